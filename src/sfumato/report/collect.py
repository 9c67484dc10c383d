"""Read run folders: everything a page or a card may show, checked once, here."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.errors import DataError, RuleBroken
from sfumato.core.guarantee import Guarantee
from sfumato.core.runs import read_json
from sfumato.core.schema import Schema
from sfumato.core.score import Score

Floats = npt.NDArray[np.float32]

MAX_RUNS = 60
MAX_POINTS = 600
MAX_RECORDS = 8
MAX_GALLERY_BYTES = 256 * 2**20

# The order in which methods are listed: the undefended one, the baselines, then the mechanisms.
_ORDER = ("none", "noisy", "gaussian", "dnn", "dnn-resized", "vfae", "lmifr", "fedavg", "dp-fedavg")
_GREEK = {"lam": "λ", "lambda": "λ", "epsilon": "ε", "eps": "ε", "delta": "δ", "sigma": "σ", "beta": "β"}
# The order of importance of threats; the first that was measured is the page's main one.
_THREATS = ("reconstruction", "attribute", "reidentification")


@dataclass(frozen=True)
class Gallery:
    """The same few victims: the record, what was released for it, and what each attack rebuilt."""

    originals: Floats
    release: Floats | None
    recon: Mapping[str, Floats]


@dataclass(frozen=True)
class Features:
    """Three principal components of released features, with one label."""

    points: tuple[tuple[float, float, float], ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...]
    label: str


@dataclass(frozen=True)
class Run:
    """One audited run folder. ``name`` is its folder without what lies above it; ``setting`` tells it from
    other runs of its mechanism ("" where it is the only one)."""

    name: str
    mechanism: str
    data: str
    config: Mapping[str, Any]
    config_text: str
    schema: Schema
    guarantee: Guarantee
    utility: tuple[Score, ...]
    attacks: tuple[Score, ...]
    worst: Mapping[str, Score]
    gallery: Gallery | None = None
    features: Features | None = None
    env: Mapping[str, Any] = field(default_factory=dict)
    epochs: int = 0
    setting: str = ""

    @property
    def title(self) -> str:
        return f"{self.mechanism}, {self.setting}" if self.setting else self.mechanism

    @property
    def labels(self) -> tuple[str, ...]:
        """The utility labels, in the order of the configuration."""
        named = self.config.get("data", {}).get("utility") or self.schema.utility
        return tuple(str(name) for name in named)

    @property
    def use(self) -> Score | None:
        """The best primary utility score of the first utility label: what others can do with the release."""
        first = self.labels[0] if self.labels else None
        of_first = [s for s in self.utility if s.target in (None, first)] or list(self.utility)
        primary = [s for s in of_first if s.primary] or of_first
        return max(primary, key=lambda s: s.value, default=None)

    @property
    def seed(self) -> str:
        return str(self.config.get("run", {}).get("seed", "not recorded"))

    @property
    def picture_attack(self) -> str | None:
        """The attack whose reconstructions are shown: the worst one, if its pictures were kept."""
        if self.gallery is None or not self.gallery.recon:
            return None
        worst = self.worst.get("reconstruction")
        if worst is not None and worst.attack in self.gallery.recon:
            return worst.attack
        return next(iter(self.gallery.recon))


@dataclass(frozen=True)
class Group:
    """The runs on one data set with one schema: what may be compared with one another."""

    data: str
    schema: Schema
    runs: tuple[Run, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """The mechanisms, in listing order."""
        return tuple(dict.fromkeys(run.mechanism for run in self.runs))

    @property
    def threats(self) -> tuple[str, ...]:
        """Keys of ``worst`` over all runs, the main threat first."""
        keys = dict.fromkeys(key for run in self.runs for key in run.worst)
        return tuple(sorted(keys, key=_threat_rank))

    def of(self, method: str) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.mechanism == method)

    def representative(self, method: str) -> Run:
        """The run with the best accuracy within a method (the first of equals)."""
        return max(self.of(method), key=lambda run: run.use.value if run.use else float("-inf"))


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
        raise DataError(f"{path} is not a run folder (it has no config.toml).")
    if not (path / "scores.json").is_file():
        raise DataError(f"{path} was not audited (it has no scores.json): run `sfumato audit {path}` first.")
    try:
        config_text = config_file.read_text(encoding="utf-8")
        config = tomllib.loads(config_text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{config_file} is not valid TOML ({error}).") from None
    scores = read_json(path / "scores.json")
    try:
        schema = Schema.from_json(read_json(path / "schema.json"))
        return Run(
            name=name or path.resolve().name,
            mechanism=str(scores["mechanism"]),
            data=_data_name(scores["data"]),
            config=config,
            config_text=config_text,
            schema=schema,
            guarantee=Guarantee.from_json(scores["guarantee"]),
            utility=tuple(_score(s) for s in scores["utility"]),
            attacks=tuple(_score(s) for s in scores["attacks"]),
            worst={str(key): _score(s) for key, s in scores["worst"].items()},
            gallery=_gallery(path / "gallery.safetensors", schema),
            features=_features(path / "features.json"),
            env=read_json(path / "env.json") if (path / "env.json").is_file() else {},
            epochs=_epochs(path / "metrics.jsonl"),
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuleBroken) as error:
        detail = f"{type(error).__name__}: {error}"
        raise DataError(f"the files in {path} do not have the expected form ({detail}): audit it again.") from None


def _expand(folder: Path) -> list[tuple[Path, str]]:
    """The run folders in ``folder``, each with the name to print: never a path above the folder itself."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder.")
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
    """Runs in listing order; within a mechanism, by the parameters that vary, which become their setting."""
    ordered: list[Run] = []
    for method in sorted({run.mechanism for run in runs}, key=_method_rank):
        members = [run for run in runs if run.mechanism == method]
        knobs = _varying(members)
        members = _sorted_by(members, knobs)
        ordered.extend(replace(run, setting=_setting(run, knobs) if len(members) > 1 else "") for run in members)
    return tuple(ordered)


def _sorted_by(runs: Sequence[Run], knobs: Sequence[str]) -> list[Run]:
    return sorted(runs, key=lambda run: [_sortable(_param(run, knob)) for knob in knobs])


def _setting(run: Run, knobs: Sequence[str]) -> str:
    if not knobs:
        return run.name
    return ", ".join(f"{_GREEK.get(knob, knob)} = {_plain(_param(run, knob))}" for knob in knobs)


def _varying(runs: Sequence[Run]) -> list[str]:
    names = dict.fromkeys(name for run in runs for name in run.config.get("params", {}))
    varying = [name for name in names if len({repr(_param(run, name)) for run in runs}) > 1]
    seeds = len({run.seed for run in runs}) > 1
    return [*varying, "seed"] if seeds else varying


def _param(run: Run, name: str) -> Any:
    return run.seed if name == "seed" else run.config.get("params", {}).get(name, "default")


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _sortable(value: Any) -> tuple[int, float, str]:
    number = isinstance(value, (int, float))
    return (0, float(value), "") if number else (1, 0.0, str(value))


def _method_rank(name: str) -> tuple[int, str]:
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)


def _threat_rank(key: str) -> tuple[int, str]:
    threat = key.partition(":")[0]
    return (_THREATS.index(threat) if threat in _THREATS else len(_THREATS), key)


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
    originals = arrays["originals"]
    recon = {name.removeprefix("recon/"): a for name, a in sorted(arrays.items()) if name.startswith("recon/")}
    for name, array in {"originals": originals, **recon}.items():
        if array.shape != (len(originals), *schema.shape):
            raise ValueError(f"{name} in {file.name} has shape {array.shape}, the schema says {schema.shape}")
    return Gallery(originals=originals, release=arrays.get("release"), recon=recon)


def _features(file: Path) -> Features | None:
    if not file.is_file():
        return None
    value = read_json(file)
    points = tuple(_triple(point) for point in value["points"][:MAX_POINTS])
    labels = tuple(int(label) for label in value["labels"][:MAX_POINTS])
    classes = tuple(str(name) for name in value["classes"])
    if len(points) != len(labels) or (labels and not 0 <= min(labels) <= max(labels) < len(classes)):
        raise ValueError(f"the labels in {file.name} do not fit its points or its classes")
    return Features(points=points, labels=labels, classes=classes, label=str(value["label"])) if points else None


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
