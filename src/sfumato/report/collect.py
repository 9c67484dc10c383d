"""Read run folders: everything a page or a card may show, checked once, here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core.documents import json_value, toml_table
from sfumato.core.errors import DataError, RuleBroken
from sfumato.core.guarantee import Guarantee
from sfumato.core.run_folder import read_json
from sfumato.core.schema import Schema
from sfumato.core.score import Score
from sfumato.core.threats import Threat, register
from sfumato.core.traits import Traits
from sfumato.report.audited_runs import (
    Budget,
    Colouring,
    Confusion,
    Exposed,
    Features,
    Floats,
    Gallery,
    Group,
    LedgerLine,
    Reading,
    Run,
    WrongKey,
    by_method,
)
from sfumato.report.stored_gates import stored_gate
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
        for path, name in expanded(folder):
            found.setdefault(path.resolve(), name)
    if len(found) > MAX_RUNS:
        raise DataError(
            f"{len(found)} runs are too many for one page (at most {MAX_RUNS}): report fewer folders at a time."
        )
    return grouped([read_run(path, name) for path, name in zip(found, _told_apart(found), strict=True)])


def read_run(path: Path, name: str | None = None) -> Run:
    """Read one audited run folder."""
    config_file = path / "config.toml"
    if not config_file.is_file():
        raise DataError(
            f"{path} is not a run folder (it has no config.toml): name one that sfumato fit, sweep or reproduce made."
        )
    if not (path / "scores.json").is_file():
        raise DataError(f"{path} was not audited (it has no scores.json): run `sfumato audit {path}` first.")
    config = toml_table(config_file.read_bytes(), str(config_file), "restore it")
    scores = read_json(path / "scores.json")
    if "traits" not in scores:
        raise DataError(f"{path} was audited by an older sfumato: run `sfumato audit {path} --again` first.")
    try:
        for value in scores["threats"].values():  # those of plugins need not be installed here
            register(Threat.from_json(value))
        traits = Traits.from_json(scores["traits"])
        schema, data = Schema.from_json(read_json(path / "schema.json")), scores["data"]
        return Run(
            name=name or path.resolve().name,
            mechanism=f"{scores['mechanism']} ({traits.variant})" if traits.variant else str(scores["mechanism"]),
            traits=traits,
            data=str(data.get("source", "data") if isinstance(data, Mapping) else data),
            config=config,
            config_text=config_file.read_text(encoding="utf-8"),
            schema=schema,
            guarantee=Guarantee.from_json(scores["guarantee"]),
            utility=tuple(_score(s) for s in scores["utility"]),
            attacks=tuple(_score(s) for s in scores["attacks"]),
            worst={str(key): _score(s) for key, s in scores["worst"].items()},
            titles={str(name): (str(title), str(how)) for name, (title, how) in scores["titles"].items()},
            confusion={str(label): _confusion(value) for label, value in scores.get("confusion", {}).items()},
            information=tuple(_score(s) for s in scores.get("information", [])),
            wrong_key=_wrong_key(scores.get("wrong_key")),
            budget=_budget(_read_if_there(path / "budget.json")),
            gallery=_gallery(path / "gallery.safetensors", schema),
            features=_features(_read_if_there(path / "features.json")),
            env=_read_if_there(path / "env.json") or {},
            epochs=_epochs(path / "metrics.jsonl"),
            repeated=tuple(_score(s) for s in scores.get("repeated", [])),
            fairness=tuple(_score(s) for s in scores.get("fairness", [])),
            attack_steps=scores.get("effort", {}).get("attack_steps"),
            precision=scores.get("precision", "fp32"),
            skipped=tuple((str(one["attack"]), str(one["reason"])) for one in scores.get("skipped", [])),
            notes=tuple(str(note) for note in scores.get("notes", [])),
            exposure={str(key): _exposed(value) for key, value in scores.get("exposure", {}).items()},
            gate=stored_gate(path),
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuleBroken) as error:
        detail = f"{type(error).__name__}: {error}"
        raise DataError(f"the files in {path} do not have the expected form ({detail}): audit it again.") from None


def _read_if_there(file: Path) -> Any:
    """The JSON value in a file that not every run has; None where it is missing."""
    return read_json(file) if file.is_file() else None


def expanded(folder: Path) -> list[tuple[Path, str]]:
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


def grouped(runs: Sequence[Run]) -> tuple[Group, ...]:
    """The runs that may be compared with one another, together."""
    groups: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        key = (run.data, run.schema.kind, run.schema.shape, run.labels)
        groups.setdefault(key, []).append(run)
    return tuple(
        Group(data=members[0].data, schema=members[0].schema, runs=_with_settings(members))
        for members in groups.values()
    )


def _with_settings(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Controls, baselines, mechanisms; within a mechanism by what varies, which becomes the runs' setting."""
    ordered: list[Run] = []
    roles = {run.mechanism: (_ROLES.index(run.traits.role), run.traits.unprotected != "record") for run in runs}
    for members in sorted(by_method(runs).values(), key=lambda own: roles[own[0].mechanism]):  # else as given
        if len(members) == 1:
            ordered += members
            continue
        varying = _varying(members)
        settings = [_setting(run, varying) for run in members]
        named = [
            replace(run, setting=setting if settings.count(setting) == 1 else f"{setting}, {run.name}".lstrip(", "))
            for run, setting in zip(members, settings, strict=True)
        ]
        ordered += sorted(named, key=lambda run: [_sortable(_told(run).get(name)) for name in varying])
    return tuple(ordered)


def _told(run: Run) -> dict[str, Any]:
    """What may tell a run from others of its mechanism."""
    return {**run.params, "private": ", ".join(run.private) or "no label", "seed": run.seed}


def _varying(runs: Sequence[Run]) -> list[str]:
    names = dict.fromkeys(name for run in runs for name in _told(run))
    return [name for name in names if len({repr(_told(run).get(name)) for run in runs}) > 1]


def _setting(run: Run, names: Sequence[str]) -> str:
    told = {name: _told(run).get(name, "default") for name in names}
    values = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in told.items()}
    return ", ".join(f"{parameter_name(name)} = {value}" for name, value in values.items())


def _sortable(value: Any) -> tuple[int, float, str]:
    number = isinstance(value, (int, float))
    return (0, float(value), "") if number else (1, 0.0, str(value))


def _score(value: Mapping[str, Any]) -> Score:
    score = Score.from_json(value)
    numbers = [score.value, *score.ci, *(v for v in (score.baseline, score.control) if v is not None)]
    if not all(isinstance(number, (int, float)) for number in numbers):
        raise TypeError(f"the score {score.metric} of {score.attack} is not a number")
    return score


def _exposed(value: Mapping[str, Any]) -> Exposed:
    groups = tuple(dict(one) for one in value["groups"])
    for one in groups:
        numbers = (one["leakage"], *one["leakage_ci"], one["people"])
        if not all(isinstance(number, (int, float)) for number in numbers) or len(one["leakage_ci"]) != 2:
            raise TypeError(f"the leakage of {one['column']} = {one['value']} is not a number")
        one["worse"] = bool(one["worse"])
    above = {name: float(value["share_above"][name]) for name in ("threshold", "share")}
    above["people"] = int(value["share_above"]["people"])
    records = tuple(
        {"id": str(one["id"]), "leakage": float(one["leakage"]), "score": float(one["score"])}
        for one in value["most_exposed"]
    )
    return Exposed(str(value["attack"]), str(value["metric"]), groups, above, records)


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
    if not arrays:
        return None  # rows of a file have no pictures
    synthetic = arrays.get("synthetic")
    gallery = Gallery(
        originals=arrays["originals" if synthetic is None else "nearest"],
        release=arrays.get("release"),
        recon=_under("recon/", arrays),
        decoded=arrays.get("decoded"),
        lists=_under("recon-list/", arrays),
        synthetic=synthetic,
    )
    one_each = {"originals": gallery.originals, **gallery.recon, "decoded": gallery.decoded, "synthetic": synthetic}
    for name, array in one_each.items():
        if array is not None and array.shape != (len(gallery.originals), *schema.shape):
            raise ValueError(f"{name} in {file.name} has shape {array.shape}, the schema says {schema.shape}")
    for name, guesses in gallery.lists.items():
        if guesses.ndim < 2 or (len(guesses), *guesses.shape[2:]) != (len(gallery.originals), *schema.shape):
            raise ValueError(f"the list of {name} in {file.name} has shape {guesses.shape}, a record {schema.shape}")
    return gallery


def _under(prefix: str, arrays: Mapping[str, Floats]) -> dict[str, Floats]:
    """The arrays whose names start with a prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in sorted(arrays.items()) if name.startswith(prefix)}


def _budget(value: Any) -> Budget | None:
    """The ledger of a private run."""
    if value is None:
        return None
    spent, bypassed = value["spent"], value.get("bypassed")
    return Budget(
        relation=str(value["relation"]),
        epsilon=float(spent["epsilon"]),
        epsilon_rdp=float(spent["epsilon_rdp"]),
        delta=float(spent["delta"]),
        bypassed=None if bypassed is None else str(bypassed),
        asked=tuple(_asked(event) for event in value["events"]),
    )


def _asked(event: Mapping[str, Any]) -> LedgerLine:
    rate, noise, epsilon = (float(event[name]) for name in ("rate", "noise", "epsilon_alone"))
    return LedgerLine(str(event["part"]), str(event["name"]), int(event["count"]), rate, noise, epsilon)


def _wrong_key(value: Mapping[str, Any] | None) -> WrongKey | None:
    if not value:
        return None
    labels = len(value.get("labels", ())) or 1  # older runs read the first alone
    value = {**value, **value.get("mean", {})}
    curve = tuple(_reading(entry) for entry in value["curve"])
    angles = tuple(float(angle) for angle in value["angles"])
    if not curve or len(curve) != len(angles):
        raise ValueError(f"{len(curve)} accuracies do not fit {len(angles)} angles between keys")
    chance, uniform = float(value["chance"]), _reading(value["uniform"])
    return WrongKey(int(value["d"]), chance, angles, curve, uniform, labels)


def _reading(value: Mapping[str, Any]) -> Reading:
    low, high = value["ci"]
    return Reading(float(value["accuracy"]), (float(low), float(high)))


def _confusion(value: Mapping[str, Any]) -> Confusion:
    classes = tuple(str(name) for name in value["classes"])
    matrix = tuple(tuple(int(entry) for entry in row) for row in value["matrix"])
    if len(matrix) != len(classes) or any(len(row) != len(classes) for row in matrix):
        raise ValueError(f"the confusion matrix of {value['attack']} does not fit its classes")
    return Confusion(str(value["attack"]), classes, matrix)


def _features(value: Any) -> Features | None:
    if not value or not value["points"]:
        return None
    points = tuple(_triple(point) for point in value["points"][:MAX_POINTS])
    label = str(value["label"])
    kept = {label: {"classes": value["classes"], "codes": value["labels"]}, **value.get("colours", {})}
    colours = {str(name): _colouring(colour, len(points)) for name, colour in kept.items()}
    return Features(points, label, colours, method=str(value.get("method", "pca")))


def _colouring(value: Mapping[str, Any], points: int) -> Colouring:
    classes = tuple(str(name) for name in value["classes"])
    codes = tuple(int(code) for code in value["codes"][:MAX_POINTS])
    if len(codes) != points or (codes and not 0 <= min(codes) <= max(codes) < len(classes)):
        raise ValueError("the labels in features.json do not fit its points or its classes")
    return Colouring(classes, codes)


def _triple(point: Iterable[float]) -> tuple[float, float, float]:
    """A point of three components; a feature of fewer components lies in a plane or on a line."""
    x, y, z = (*(round(float(v), 4) for v in point), 0.0, 0.0)[:3]
    return x, y, z


def _epochs(file: Path) -> int:
    """How many epochs the training record holds."""
    if not file.is_file():
        return 0
    lines = [json_value(line, str(file)) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    return max((int(line.get("epoch", 0)) for line in lines), default=0)
