"""Read run folders: everything a page or a card may show, checked once, here."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core.errors import DataError, RuleBroken
from sfumato.core.guarantee import Guarantee
from sfumato.core.run_folder import read_json
from sfumato.core.schema import Schema
from sfumato.core.score import Score
from sfumato.core.threats import Threat, register
from sfumato.core.traits import Traits
from sfumato.report.audited_runs import (
    Asked,
    Budget,
    Colouring,
    Confusion,
    Features,
    Gallery,
    Group,
    Reading,
    Run,
    WrongKey,
)
from sfumato.report.wording import parameter_name

MAX_RUNS = 60
MAX_POINTS = 600
MAX_RECORDS = 8
MAX_GALLERY_BYTES = 256 * 2**20

_ROLES = ("control", "baseline", "mechanism")


def collect(folders: Sequence[Path]) -> tuple[Group, ...]:
    """Read all runs of ``folders`` (sweep folders are expanded) and group what is comparable."""
    if not folders:
        raise DataError("no run folder was given: name at least one.")
    found: dict[Path, str] = {}
    for folder in folders:
        for path, name in _expand(folder):
            found.setdefault(path.resolve(), name)
    if len(found) > MAX_RUNS:
        raise DataError(
            f"{len(found)} runs are too many for one page (at most {MAX_RUNS}): report fewer folders at a time."
        )
    return _grouped([read_run(path, name) for path, name in zip(found, _told_apart(found), strict=True)])


def read_run(path: Path, name: str | None = None) -> Run:
    """Read one audited run folder."""
    config_file = path / "config.toml"
    if not config_file.is_file():
        raise DataError(
            f"{path} is not a run folder (it has no config.toml): name one that sfumato fit, sweep or reproduce made."
        )
    if not (path / "scores.json").is_file():
        raise DataError(f"{path} was not audited (it has no scores.json): run `sfumato audit {path}` first.")
    try:
        config_text = config_file.read_text(encoding="utf-8")
        config = tomllib.loads(config_text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{config_file} is not valid TOML ({error}).") from None
    scores = read_json(path / "scores.json")
    if "traits" not in scores:
        raise DataError(f"{path} was audited by an older sfumato: run `sfumato audit {path} --again` first.")
    try:
        for value in scores["threats"].values():  # those of plugins need not be installed here
            register(Threat.from_json(value))
        traits = Traits.from_json(scores["traits"])
        schema = Schema.from_json(read_json(path / "schema.json"))
        return Run(
            name=name or path.resolve().name,
            mechanism=_method(str(scores["mechanism"]), traits),
            traits=traits,
            data=_data_name(scores["data"]),
            config=config,
            config_text=config_text,
            schema=schema,
            guarantee=Guarantee.from_json(scores["guarantee"]),
            utility=tuple(_score(s) for s in scores["utility"]),
            attacks=tuple(_score(s) for s in scores["attacks"]),
            worst={str(key): _score(s) for key, s in scores["worst"].items()},
            titles={str(name): (str(title), str(how)) for name, (title, how) in scores["titles"].items()},
            confusion={str(label): _confusion(value) for label, value in scores.get("confusion", {}).items()},
            information=tuple(_score(s) for s in scores.get("information", [])),
            wrong_key=_wrong_key(scores.get("wrong_key")),
            budget=_budget(path / "budget.json"),
            gallery=_gallery(path / "gallery.safetensors", schema),
            features=_features(path / "features.json"),
            env=read_json(path / "env.json") if (path / "env.json").is_file() else {},
            epochs=_epochs(path / "metrics.jsonl"),
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuleBroken) as error:
        detail = f"{type(error).__name__}: {error}"
        raise DataError(f"the files in {path} do not have the expected form ({detail}): audit it again.") from None


def _method(mechanism: str, traits: Traits) -> str:
    """The mechanism, with its variant where variants are methods of their own."""
    return f"{mechanism} ({traits.variant})" if traits.variant else mechanism


def _expand(folder: Path) -> list[tuple[Path, str]]:
    """The run folders in ``folder``, each with the name to print: never a path above the folder itself."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder: name one that sfumato fit, sweep or reproduce made.")
    own = folder.resolve().name
    if not (folder / "front.json").is_file():
        return [(folder, own)]
    front = read_json(folder / "front.json")
    points = front.get("points") if isinstance(front, dict) else None
    if not isinstance(points, list) or not points:
        raise DataError(f"{folder / 'front.json'} lists no points: run the sweep again.")
    root = folder.resolve()
    paths = [root / str(point) for point in points]
    for path in paths:
        if not path.resolve().is_relative_to(root):
            raise DataError(f"{folder / 'front.json'} names {path}, which lies outside of the folder.")
    return [(path, f"{own}/{path.relative_to(root)}") for path in paths]


def _told_apart(found: Mapping[Path, str]) -> list[str]:
    """Names that are unique on the page: with the folder above where two would be the same, else with a number."""
    names = list(found.values())
    longer = [
        f"{path.parent.name}/{name}" if names.count(name) > 1 and path.name == name else name
        for path, name in found.items()
    ]
    return [f"{name} ({i})" if longer.count(name) > 1 else name for i, name in enumerate(longer, 1)]


def _grouped(runs: Sequence[Run]) -> tuple[Group, ...]:
    groups: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        key = (run.data, run.schema.kind, run.schema.shape, run.labels)
        groups.setdefault(key, []).append(run)
    return tuple(
        Group(data=members[0].data, schema=members[0].schema, runs=_with_settings(members))
        for members in groups.values()
    )


def _with_settings(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Controls, baselines, mechanisms; within a mechanism by what varies, which becomes their setting."""
    ordered: list[Run] = []
    roles = {run.mechanism: (_ROLES.index(run.traits.role), run.traits.unprotected != "record") for run in runs}
    for method in sorted(roles, key=lambda name: roles[name]):  # else as they were given
        members = [run for run in runs if run.mechanism == method]
        varying = _varying(members)
        settings = [_setting(run, varying) for run in members]
        named = [
            replace(run, setting=setting if settings.count(setting) == 1 else f"{setting}, {run.name}".lstrip(", "))
            for run, setting in zip(members, settings, strict=True)
        ]
        ordered += _sorted_by(named, varying) if len(named) > 1 else members
    return tuple(ordered)


def _sorted_by(runs: Sequence[Run], names: Sequence[str]) -> list[Run]:
    return sorted(runs, key=lambda run: [_sortable(_told(run).get(name)) for name in names])


def _told(run: Run) -> dict[str, Any]:
    """What may tell a run from others of its mechanism."""
    return {**run.params, "private": ", ".join(run.private) or "no label", "seed": run.seed}


def _varying(runs: Sequence[Run]) -> list[str]:
    names = dict.fromkeys(name for run in runs for name in _told(run))
    return [name for name in names if len({repr(_told(run).get(name)) for run in runs}) > 1]


def _setting(run: Run, names: Sequence[str]) -> str:
    told = _told(run)
    return ", ".join(f"{parameter_name(name)} = {_plain(told.get(name, 'default'))}" for name in names)


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _sortable(value: Any) -> tuple[int, float, str]:
    number = isinstance(value, (int, float))
    return (0, float(value), "") if number else (1, 0.0, str(value))


def _data_name(value: Any) -> str:
    return str(value.get("source", "data")) if isinstance(value, Mapping) else str(value)


def _score(value: Mapping[str, Any]) -> Score:
    score = Score.from_json(value)
    numbers = [score.value, *score.ci, *(v for v in (score.baseline, score.control) if v is not None)]
    if not all(isinstance(number, (int, float)) for number in numbers):
        raise TypeError(f"the score {score.metric} of {score.attack} is not a number")
    return score


def _gallery(file: Path, schema: Schema) -> Gallery | None:
    if not file.is_file():
        return None
    if file.stat().st_size > MAX_GALLERY_BYTES:
        raise DataError(f"{file} is larger than {MAX_GALLERY_BYTES // 2**20} MiB: keep fewer or smaller records.")
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays = {name: np.asarray(array[:MAX_RECORDS], dtype=np.float32) for name, array in load_file(file).items()}
    except SafetensorError as error:
        raise DataError(f"{file} is not a safetensors file ({error}): audit the run again.") from None
    synthetic = arrays.get("synthetic")
    originals = arrays["originals"] if synthetic is None else arrays["nearest"]
    recon = {name.removeprefix("recon/"): a for name, a in sorted(arrays.items()) if name.startswith("recon/")}
    decoded = arrays.get("decoded")
    lists = {
        name.removeprefix("recon-list/"): a for name, a in sorted(arrays.items()) if name.startswith("recon-list/")
    }
    for name, guesses in lists.items():
        if guesses.ndim < 2 or (len(guesses), *guesses.shape[2:]) != (len(originals), *schema.shape):
            raise ValueError(f"the list of {name} in {file.name} has shape {guesses.shape}, a record {schema.shape}")
    records = {"originals": originals, **recon} | ({} if decoded is None else {"decoded": decoded})
    records |= {} if synthetic is None else {"synthetic": synthetic}
    for name, array in records.items():
        if array.shape != (len(originals), *schema.shape):
            raise ValueError(f"{name} in {file.name} has shape {array.shape}, the schema says {schema.shape}")
    release = arrays.get("release")
    return Gallery(originals, release, recon, decoded=decoded, lists=lists, synthetic=synthetic)


def _budget(file: Path) -> Budget | None:
    """The ledger of a private run."""
    if not file.is_file():
        return None
    value = read_json(file)
    spent, bypassed = value["spent"], value.get("bypassed")
    asked = [
        Asked(
            part=str(event["part"]),
            name=str(event["name"]),
            count=int(event["count"]),
            rate=float(event["rate"]),
            noise=float(event["noise"]),
            epsilon=float(event["epsilon_alone"]),
        )
        for event in value["events"]
    ]
    return Budget(
        relation=str(value["relation"]),
        epsilon=float(spent["epsilon"]),
        epsilon_rdp=float(spent["epsilon_rdp"]),
        delta=float(spent["delta"]),
        bypassed=None if bypassed is None else str(bypassed),
        asked=tuple(asked),
    )


def _wrong_key(value: Mapping[str, Any] | None) -> WrongKey | None:
    if not value:
        return None
    curve = tuple(_reading(entry) for entry in value["curve"])
    angles = tuple(float(angle) for angle in value["angles"])
    if not curve or len(curve) != len(angles):
        raise ValueError(f"{len(curve)} accuracies do not fit {len(angles)} angles between keys")
    chance, uniform = float(value["chance"]), _reading(value["uniform"])
    return WrongKey(int(value["d"]), int(value["n"]), chance, angles, curve, uniform)


def _reading(value: Mapping[str, Any]) -> Reading:
    low, high = value["ci"]
    return Reading(float(value["accuracy"]), (float(low), float(high)))


def _confusion(value: Mapping[str, Any]) -> Confusion:
    classes = tuple(str(name) for name in value["classes"])
    matrix = tuple(tuple(int(entry) for entry in row) for row in value["matrix"])
    if len(matrix) != len(classes) or any(len(row) != len(classes) for row in matrix):
        raise ValueError(f"the confusion matrix of {value['attack']} does not fit its classes")
    return Confusion(str(value["attack"]), classes, matrix)


def _features(file: Path) -> Features | None:
    if not file.is_file():
        return None
    value = read_json(file)
    points = tuple(_triple(point) for point in value["points"][:MAX_POINTS])
    label = str(value["label"])
    kept = {label: {"classes": value["classes"], "codes": value["labels"]}, **value.get("colours", {})}
    colours = {str(name): _colouring(colour, len(points), file) for name, colour in kept.items()}
    return Features(points, label, colours, method=str(value.get("method", "pca"))) if points else None


def _colouring(value: Mapping[str, Any], points: int, file: Path) -> Colouring:
    classes = tuple(str(name) for name in value["classes"])
    codes = tuple(int(code) for code in value["codes"][:MAX_POINTS])
    if len(codes) != points or (codes and not 0 <= min(codes) <= max(codes) < len(classes)):
        raise ValueError(f"the labels in {file.name} do not fit its points or its classes")
    return Colouring(classes, codes)


def _triple(point: Iterable[float]) -> tuple[float, float, float]:
    """A point of three components; a feature of fewer components lies in a plane or on a line."""
    x, y, z = (*(round(float(v), 4) for v in point), 0.0, 0.0)[:3]
    return x, y, z


def _epochs(file: Path) -> int:
    """How many epochs the training record holds."""
    if not file.is_file():
        return 0
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    return max((int(line.get("epoch", 0)) for line in lines), default=0)
