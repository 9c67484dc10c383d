"""A study: one table or figure of a paper, declared as points, scales and statements to check."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from sfumato.auditing import Effort
from sfumato.workflow import Point

Results = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Row:
    """One figure: ours beside the paper's (None where it gives none); ``holds`` None where nothing is claimed."""

    name: str
    metric: str
    better: Literal["lower", "higher"]
    paper: float | None
    ours: float
    ci: tuple[float, float]
    holds: bool | None = None

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "ci": list(self.ci)}


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
    """How much of a study to run."""

    parts: tuple[Part, ...]
    effort: Effort
    limit: int | None = None
    warm_start: bool = True


@dataclass(frozen=True)
class Study:
    """``data`` maps each data set to its options for ``load_splits``; ``scale`` gives the points for one of them.

    Studies of one ``family`` share their points, and so their run folder. ``rows`` sees every point's scores, with the
    name of its part.
    """

    name: str
    family: str
    title: str
    statement: str
    data: Mapping[str, Mapping[str, Any]]
    scale: Callable[[str, str], Scale]
    rows: Callable[[str, Results], list[Row]]

    def to_json(self) -> dict[str, Any]:
        return _listed(self)


@dataclass(frozen=True)
class Measurement:
    """A study without mechanisms to compare: ``run`` measures and gives the result's rows.

    It is called with the data set, the scale, a seed, a folder of its own and what hears the progress.
    """

    name: str
    family: str
    title: str
    statement: str
    data: tuple[str, ...]
    run: Callable[..., list[Row]]

    def to_json(self) -> dict[str, Any]:
        return _listed(self)

    def result(self, *, data: str, scale: str, seed: int, **options: Any) -> dict[str, Any]:
        """Measure, and give the result as stored; ``options`` go to ``run``."""
        started = time.perf_counter()
        rows = self.run(data=data, scale=scale, seed=seed, **options)
        return study_result(self, data, scale, [seed], time.perf_counter() - started, rows)


def _listed(study: Study | Measurement) -> dict[str, Any]:
    return {"name": study.name, "title": study.title, "statement": study.statement, "data": list(study.data)}


def study_result(
    study: Study | Measurement, data: str, scale: str, seeds: list[int], seconds: float, rows: Sequence[Row]
) -> dict[str, Any]:
    """What is stored of a study that was run, but for its report."""
    return {
        "study": study.name,
        "data": data,
        "scale": scale,
        "seeds": seeds,
        "seconds": round(seconds, 1),
        "statement": study.statement,
        "rows": [row.to_json() for row in rows],
    }


def accuracy(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """The accuracy score that ranks a point."""
    found: Mapping[str, Any] = next(score for score in result["utility"] if score["primary"])
    return found


def attack_score(result: Mapping[str, Any], attack: str, metric: str) -> Mapping[str, Any] | None:
    """One attack's score on a point."""
    return next((s for s in result["attacks"] if s["attack"] == attack and s["metric"] == metric), None)


def points_of(results: Results, mechanism: str) -> list[Mapping[str, Any]]:
    """The points of one mechanism."""
    return [result for result in results if result["mechanism"] == mechanism]


def highest(scores: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The score of the highest value, the first of them where several have it."""
    return max(scores, key=lambda score: float(score["value"]))


def lowest(scores: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The score of the lowest value, the first of them where several have it."""
    return min(scores, key=lambda score: float(score["value"]))


def plain_row(
    name: str,
    metric: str,
    better: Literal["lower", "higher"],
    value: float,
    *,
    paper: float | None = None,
    holds: bool | None = None,
) -> Row:
    """A row for a figure without an interval."""
    return Row(name, metric, better, paper, value, (value, value), holds)


def score_row(name: str, score: Mapping[str, Any], **more: Any) -> Row:
    """A row from a stored score."""
    return Row(
        name=name,
        metric=score["metric"],
        better=score["better_for_owner"],
        paper=more.get("paper"),
        ours=score["value"],
        ci=(score["ci"][0], score["ci"][1]),
        holds=more.get("holds"),
    )
