"""A study: one table or figure of a paper, declared as points, scales and the claims that its figures are put to."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sfumato
from sfumato.auditing import Effort
from sfumato.studies.rows import Results, Row
from sfumato.workflow import Point

Picture = Callable[[str, Results, Path], None]
"""Data set, every point's scores, and the PNG to be drawn."""


@dataclass(frozen=True)
class Part:
    """Points that are compared on the same records and labels.

    ``data`` are options for ``load_splits`` beyond the study's own, ``seed`` is added to the study's. A study of
    several parts keeps each in a folder of its ``name``. With ``users``, the text of a users' table, its one point is
    trained for each of them. ``effort`` replaces the scale's.
    """

    points: tuple[Point, ...]
    name: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    users: str = ""
    effort: Effort | None = None


@dataclass(frozen=True)
class Scale:
    """How much of a study to run; everything in it is done for each of ``seeds``, which are added to the study's."""

    parts: tuple[Part, ...]
    effort: Effort
    limit: int | None = None
    warm_start: bool = True
    seeds: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Study:
    """``data`` maps each data set to its options for ``load_splits``; ``scale`` gives the points for one of them.

    ``about`` says in our words what is measured; ``claims`` are those of the paper that it is put to, by id, and empty
    where the question is ours. Studies of one ``family`` share their points, and so their run folder. ``rows`` sees
    every point's scores of one seed, with the name of its part; rows of one name are averaged over seeds. ``picture``
    draws the figure.
    """

    name: str
    family: str
    title: str
    about: str
    data: Mapping[str, Mapping[str, Any]]
    scale: Callable[[str, str], Scale]
    rows: Callable[[str, Results], list[Row]]
    claims: tuple[str, ...] = ()
    picture: Picture | None = None

    def to_json(self) -> dict[str, Any]:
        return _listed(self)


@dataclass(frozen=True)
class Measurement:
    """A study without mechanisms to compare: ``run`` measures and gives the result's rows.

    It is called with the data set, the scale, the limit, a seed, a folder of its own and what hears the progress, once
    for each of the scale's ``seeds``. ``limits`` are the numbers of records by scale (one that is not there: all);
    None where the study has no such number.
    """

    name: str
    family: str
    title: str
    about: str
    data: tuple[str, ...]
    run: Callable[..., list[Row]]
    claims: tuple[str, ...] = ()
    seeds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    limits: Mapping[str, int] | None = None
    picture: Callable[[str, Path, Path], None] | None = None
    """Data set, the measurement's folder, and the PNG to be drawn."""

    def to_json(self) -> dict[str, Any]:
        return _listed(self)


def _listed(study: Study | Measurement) -> dict[str, Any]:
    return {
        "name": study.name,
        "title": study.title,
        "about": study.about,
        "claims": list(study.claims),
        "data": list(study.data),
    }


def study_result(
    study: Study | Measurement,
    *,
    data: str,
    scale: str,
    seed: int,
    seeds: list[int],
    seconds: float,
    rows: list[Row],
    limit: int | None = None,
) -> dict[str, Any]:
    """What is stored of a study that was run, but for its report and picture.

    The command names the limit that was used, also the scale's own: it gives the same rows when that has changed.
    """
    chosen = ("" if limit is None else f" --limit {limit}") + ("" if seed == 0 else f" --seed {seed}")
    return {
        "study": study.name,
        "data": data,
        "scale": scale,
        "seeds": seeds,
        "seconds": round(seconds, 1),
        "command": f"sfumato reproduce {study.name} --data {data} --scale {scale}{chosen}",
        "limit": limit,
        "version": sfumato.__version__,
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "about": study.about,
        "claims": list(study.claims),
        "rows": [row.to_json(scale) for row in rows],
    }


def commit() -> str | None:
    """The commit of the code, with a + where it was changed since; None where it does not run from a checkout."""
    here = Path(__file__).parent
    try:
        asked = ["git", "-C", str(here), "describe", "--always", "--dirty=+", "--exclude=*", "--abbrev=10"]
        found = subprocess.run(asked, capture_output=True, text=True, timeout=10, check=False)
        inside = subprocess.run(
            ["git", "-C", str(here), "ls-files", "--error-unmatch", Path(__file__).name],
            capture_output=True,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None if found.returncode == 0 and inside.returncode == 0 else None
