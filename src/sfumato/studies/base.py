"""A study: one table or figure of a paper, declared as points, scales and statements to check."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
        return {
            "name": self.name,
            "metric": self.metric,
            "better": self.better,
            "paper": self.paper,
            "ours": self.ours,
            "ci": list(self.ci),
            "holds": self.holds,
        }


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
        return {"name": self.name, "title": self.title, "statement": self.statement, "data": list(self.data)}


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
        return {"name": self.name, "title": self.title, "statement": self.statement, "data": list(self.data)}


def accuracy(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """The accuracy score that ranks a point."""
    found: Mapping[str, Any] = next(score for score in result["utility"] if score["primary"])
    return found


def attack_score(result: Mapping[str, Any], attack: str, metric: str) -> Mapping[str, Any] | None:
    """One attack's score on a point."""
    return next((s for s in result["attacks"] if s["attack"] == attack and s["metric"] == metric), None)


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
