"""Run folders while they come to be: which there are below a folder, how far each is, and what can be shown of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from sfumato.core.documents import json_value, toml_table
from sfumato.core.errors import DataError
from sfumato.core.run_folder import read_json
from sfumato.report.audited_runs import Group
from sfumato.report.collect import MAX_RUNS, expanded, grouped, read_run

_DEPTH = 3  # folders of folders of runs
_SHOWN = ("scores.json", "gate.json", "gallery.safetensors", "features.json", "config.toml")
"""The files that a page is made of."""

Stage = Literal["waiting", "fitting", "fitted", "done"]


@dataclass(frozen=True)
class Progress:
    """How far one run is: an audit leaves nothing until it is done, ``detail`` is the epoch of a fit."""

    name: str
    stage: Stage
    detail: str


@dataclass(frozen=True)
class News:
    """What changed since: ``version`` is another one as soon as the page would be another one."""

    version: str
    runs: tuple[Progress, ...]
    unread: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Followed:
    """The runs below some folders that can be shown, and why others cannot."""

    groups: tuple[Group, ...]
    unread: tuple[str, ...]


def run_folders(roots: Sequence[Path]) -> list[tuple[Path, str]]:
    """Every run below the roots with the name to print, finished or not; of a sweep also those to come."""
    found = {path.resolve(): (path, name) for root in roots for path, name in _below(root, _DEPTH)}
    return list(found.values())


def _below(root: Path, depth: int, above: str = "") -> Iterator[tuple[Path, str]]:
    """Runs and sweeps in a folder and in its folders, ``above`` being the names of those in between."""
    if (root / "front.json").is_file():
        yield from ((path, above + name) for path, name in expanded(root))
    elif (root / "config.toml").is_file():
        yield root, above + root.resolve().name
    elif depth and root.is_dir():
        within = f"{above}{root.name}/" if depth < _DEPTH else ""
        for folder in sorted(root.iterdir()):
            if folder.is_dir() and not folder.name.startswith("."):
                yield from _below(folder, depth - 1, within)


def news(roots: Sequence[Path], unread: Sequence[str] = ()) -> News:
    """How far every run is; cheap enough to be asked every other second."""
    folders = run_folders(roots)
    stamps = hashlib.sha256()
    for path, name in folders:
        for file in _SHOWN:
            try:
                found = (path / file).stat()
            except OSError:
                continue
            stamps.update(f"{name}/{file} {found.st_mtime_ns} {found.st_size}\n".encode())
    return News(stamps.hexdigest(), tuple(_progress(path, name) for path, name in folders), tuple(unread))


def _progress(path: Path, name: str) -> Progress:
    if (path / "scores.json").is_file():
        return Progress(name, "done", "")
    if not (path / "config.toml").is_file():
        return Progress(name, "waiting", "")
    if _state(path / "status.json") == "done":
        return Progress(name, "fitted", "its audit has not finished")
    epoch, total = _epoch(path / "metrics.jsonl"), _epochs(path / "config.toml")
    return Progress(name, "fitting", f"epoch {epoch}{f' of {total}' if total else ''}" if epoch else "")


def _state(file: Path) -> str:
    try:
        return str(read_json(file)["state"])
    except (DataError, KeyError, TypeError):
        return ""  # not there yet


def _epoch(file: Path) -> int:
    try:
        last = file.read_text(encoding="utf-8").rstrip("\n").rpartition("\n")[2]
        return int(json_value(last, str(file), "")["epoch"]) if last else 0
    except (OSError, DataError, KeyError, TypeError, ValueError):
        return 0  # not there yet


def _epochs(file: Path) -> int:
    try:
        asked = toml_table(file.read_bytes(), str(file), "").get("params", {}).get("epochs", 0)
    except (OSError, DataError):
        return 0
    return asked if isinstance(asked, int) else 0


def followed(roots: Sequence[Path]) -> Followed:
    """What can be shown now: the audited runs, the newest ones if they are too many for one page."""
    audited = [(path, name) for path, name in run_folders(roots) if (path / "scores.json").is_file()]
    unread = []
    if len(audited) > MAX_RUNS:
        newest = sorted(audited, key=lambda one: (one[0] / "scores.json").stat().st_mtime, reverse=True)[:MAX_RUNS]
        unread.append(f"the newest {MAX_RUNS} of {len(audited)} runs are shown")
        audited = [one for one in audited if one in newest]
    runs = []
    for path, name in audited:
        try:
            runs.append(read_run(path, name))
        except DataError as error:
            unread.append(str(error))
    return Followed(grouped(runs), tuple(unread))


def check(roots: Sequence[Path]) -> None:
    """Raise unless every root is a folder that may be followed."""
    for root in roots:
        if not root.is_dir():
            raise DataError(f"{root} is not a folder: name a run, a sweep, or a folder that holds some.")
        if (root / "front.json").is_file() and not isinstance(read_json(root / "front.json"), dict):
            raise DataError(f"{root / 'front.json'} lists no points: run the sweep again.")
