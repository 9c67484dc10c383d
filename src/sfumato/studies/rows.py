"""Rows of a study: one figure each, ours beside the paper's, with what it needs to be believed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sfumato.core.errors import DataError, RuleBroken
from sfumato.core.intervals import Interval, bootstrap, mean_interval, students_t
from sfumato.core.run_folder import EACH_RECORD, read_tensors
from sfumato.core.score import mixed_versions
from sfumato.studies.verdicts import HOLDS, OPEN, Asked, verdict

Results = Sequence[Mapping[str, Any]]
Better = Literal["lower", "higher"]
Values = npt.NDArray[np.float64]
Scored = tuple[Mapping[str, Any], Mapping[str, Any]]
"""A point's result and one of its scores."""


@dataclass(frozen=True)
class Row:
    """One figure: ours beside the paper's (None where it gives none).

    ``ci`` is None where there is no interval; one of its ends may be infinite, as of a bound. ``exact`` figures are
    computed, from no record and no draw: they need neither interval nor scale. ``asked`` is what a claim of the paper
    asks of the figure. ``majority`` is what the most frequent answer gets, beside an accuracy; ``n`` records are of so
    many ``people``. ``seeds`` is how many runs were averaged.
    """

    name: str
    metric: str
    better: Better
    paper: float | None
    ours: float
    ci: tuple[float, float] | None = None
    asked: Asked | None = None
    n: int | None = None
    people: int | None = None
    majority: float | None = None
    seeds: int = 1
    exact: bool = False

    def to_json(self, scale: str) -> dict[str, Any]:
        """As stored: ``holds`` is the verdict as a yes, a no, or null where nothing was asked or settled; an infinite
        end of an interval is null."""
        found = verdict(self.asked, (self.ours, self.ours) if self.exact else self.ci, scale if not self.exact else "")
        asked = None if self.asked is None else asdict(self.asked)
        value = asdict(self)
        return {
            **value,
            "ci": None if self.ci is None else [end if math.isfinite(end) else None for end in self.ci],
            "holds": None if found in (None, OPEN) else found == HOLDS,
            "verdict": found,
            "claim": None if asked is None else asked.pop("claim"),
            "setting": None if asked is None else asked.pop("setting"),
            "asked": asked,
        }


def plain_row(name: str, metric: str, better: Better, value: float, **more: Any) -> Row:
    """A row for a figure without an interval."""
    return Row(name, metric, better, more.pop("paper", None), value, **more)


def bound_row(name: str, value: float, *, asked: Asked | None = None, n: int | None = None) -> Row:
    """A row for a lower bound of ε that was counted, with 95 % confidence: an interval without an upper end."""
    return Row(name, "epsilon lower bound", "lower", None, value, (value, math.inf), asked, n)


def score_row(name: str, score: Mapping[str, Any], *, paper: float | None = None, asked: Asked | None = None) -> Row:
    """A row from a stored score."""
    counted = score["metric"] == "accuracy"
    return Row(
        name=name,
        metric=score["metric"],
        better=score["better_for_owner"],
        paper=paper,
        ours=score["value"],
        ci=(score["ci"][0], score["ci"][1]),
        asked=asked,
        n=score.get("n"),
        people=score.get("people"),
        majority=score.get("baseline") if counted else None,
    )


def each_of(result: Mapping[str, Any], score: Mapping[str, Any]) -> tuple[Values, npt.NDArray[Any] | None]:
    """The score's value for each record, and whose record each is (None: everybody has one)."""
    key, stored = key_of(score), stored_each(result)
    if key not in stored:
        raise RuleBroken(f"{result['point']}: no value of each record is stored for {key}.")
    whose = stored.get(f"{key}|person")
    return np.asarray(stored[key], dtype=np.float64), None if whose is None else np.asarray(whose)


def stored_each(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Everything that a point's audit stored record by record."""
    found: Mapping[str, Any] = result.get("each") or read_tensors(Path(result["folder"]) / EACH_RECORD)
    return found


def key_of(score: Mapping[str, Any]) -> str:
    """Under which a score's values are stored."""
    return f"{score['attack']}|{score.get('target') or ''}|{score['metric']}"


def difference(ours: Scored, theirs: Scored) -> tuple[float, Interval]:
    """The mean difference over the same victims with its interval; each side is a result and one of its scores."""
    a, b, whose = _pairs(ours, theirs)
    return float((a - b).mean()), mean_interval(a - b, whose)


def ratio(ours: Scored, theirs: Scored) -> tuple[float, Interval]:
    """The ratio of two means over the same victims with its interval; each side is a result and one of its scores."""
    a, b, whose = _pairs(ours, theirs)

    def statistic(weights: Values) -> float:
        return float((weights @ a) / max(float(weights @ b), 1e-12))

    return statistic(np.ones(len(a))), bootstrap(statistic, len(a), whose)


def quotient(ours: Scored, theirs: Scored) -> tuple[float, Interval]:
    """The ratio of two means over different victims, as ``ratio``; its interval adds the relative half-widths of
    both in squares, as those of independent figures.
    """
    (_, a), (_, b) = ours, theirs
    value = float(a["value"] / max(b["value"], 1e-12))
    low, high = (value * half for half in _halves(a, b, max(a["value"], 1e-12), max(b["value"], 1e-12)))
    return value, (value - low, value + high)


def remainder(
    ours: tuple[Mapping[str, Any], Mapping[str, Any]], theirs: tuple[Mapping[str, Any], Mapping[str, Any]]
) -> tuple[float, Interval]:
    """The difference of two means over different victims, with the half-widths of both added in squares."""
    (_, a), (_, b) = ours, theirs
    value = float(a["value"] - b["value"])
    low, high = _halves(a, b, 1.0, 1.0)
    return value, (value - low, value + high)


def _halves(a: Mapping[str, Any], b: Mapping[str, Any], of_a: float, of_b: float) -> tuple[float, float]:
    """How far down and up the difference of two independent figures may be, each in its own unit."""

    def half(one: int, other: int) -> float:
        far, near = abs(a["ci"][one] - a["value"]) / of_a, abs(b["ci"][other] - b["value"]) / of_b
        return float((far**2 + near**2) ** 0.5)

    return half(0, 1), half(1, 0)


def aligned(*scored: Scored) -> tuple[list[Values], npt.NDArray[Any] | None]:
    """The values of several scores for the victims whom all of them have, in one order, and whose record each is.

    Attacks that cost as much for every victim see some of them: two such attacks are compared over those whom both saw.
    """
    places = [_places(*one) for one in scored]
    whole = {len(rows) for rows, one in zip(places, scored, strict=True) if _stored_rows(*one) is None}
    known = all((rows >= 0).all() and (not whole or (rows < min(whole)).all()) for rows in places)
    common = places[0]
    for rows in places[1:]:
        common = common[np.isin(common, rows)]
    if len({result["seed"] for result, _ in scored if "seed" in result}) > 1 or not known or not len(common):
        names = " and ".join(dict.fromkeys(f"{result['point']} ({score['attack']})" for result, score in scored))
        raise RuleBroken(f"{names} were not measured on the same victims.")
    found: list[Values] = []
    people: npt.NDArray[Any] | None = None
    for rows, one in zip(places, scored, strict=True):
        values, whose = each_of(*one)
        order = np.argsort(rows)
        at = order[np.searchsorted(rows, common, sorter=order)]
        found.append(values[at])
        if people is None and whose is not None:
            people = whose[at]
    return found, people


def _pairs(ours: Scored, theirs: Scored) -> tuple[Values, Values, npt.NDArray[Any] | None]:
    seen = [(score["attack"], score.get("attack_version", 1)) for _, score in (ours, theirs)]
    if mixed_versions(seen):
        both = f"{ours[0]['point']} and {theirs[0]['point']}"
        raise DataError(f"{both} were attacked by different versions of {seen[0][0]}: measure both again.")
    (a, b), whose = aligned(ours, theirs)
    return a, b, whose


def _stored_rows(result: Mapping[str, Any], score: Mapping[str, Any]) -> Any:
    """The stored places of a score's records; None where they are all victims."""
    return stored_each(result).get(f"{key_of(score)}|row")


def _places(result: Mapping[str, Any], score: Mapping[str, Any]) -> npt.NDArray[np.int64]:
    """The place of each value's record among the audit's victims."""
    rows = _stored_rows(result, score)
    return np.arange(len(each_of(result, score)[0])) if rows is None else np.asarray(rows, dtype=np.int64)


def over_seeds(runs: Sequence[Sequence[Row]]) -> list[Row]:
    """The rows of several seeds as one: means of the rows of one name, in the order of their first appearance."""
    if len(runs) == 1:
        return list(runs[0])
    named: dict[str, list[Row]] = {}
    for rows in runs:
        for row in rows:
            named.setdefault(row.name, []).append(row)
    return [_mean(rows) for rows in named.values()]


def _mean(rows: Sequence[Row]) -> Row:
    """The mean row; its interval holds what differs between seeds and what differs between victims.

    Seeds share victims, so the latter does not shrink with their number:

        half² = (t₀.₉₇₅(k − 1) · s/√k)² + (mean half-width within a seed)².
    """
    first, k = rows[0], len(rows)
    if k == 1:
        return first
    values = [row.ours for row in rows]
    value = mean(values)
    intervals = [row.ci for row in rows if row.ci is not None]
    ci = None
    if len(intervals) == k:
        between = students_t(k - 1) * stdev(values) / k**0.5
        low = mean(v - i[0] for v, i in zip(values, intervals, strict=True))
        high = mean(i[1] - v for v, i in zip(values, intervals, strict=True))
        ci = (value - (between**2 + low**2) ** 0.5, value + (between**2 + high**2) ** 0.5)
    shares = [row.majority for row in rows if row.majority is not None]
    unsettled = next((row.asked for row in rows if row.asked is not None and row.asked.unless), first.asked)
    return replace(first, ours=value, ci=ci, asked=unsettled, majority=mean(shares) if shares else None, seeds=k)


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
