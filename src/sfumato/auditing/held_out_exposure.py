"""Who is worst off where a figure is what members lose beyond held-out people: groups, and the most exposed members.

For every question the attack that counts for everybody, with a value in [0, 1] for each member and each stranger:

    leakage of a group   = (mean of its members − mean of the strangers of the same group) / control,
                           of membership (2 · AUROC of its members against its strangers − 1) / control
    leakage of a member  = max over t up to its value: 1 − P(a stranger has t or more) / P(a member has t or more)

The second is the share of members found as surely as this one whom luck does not explain. For strangers the upper end
of a one-sided 95 % interval stands, so that a few lucky members are not called exposed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.auditing.exposure import FEWEST, SMALLER, THRESHOLD
from sfumato.core.dataset import IntArray
from sfumato.core.intervals import CONFIDENCE, Interval, area_interval, difference_interval, share_interval, wilson
from sfumato.core.knowledge import Truth
from sfumato.core.metrics import Values
from sfumato.core.score import Score, worst_by_threat

_MOST_EXPOSED = 10
_ONE_SIDED = 1.6448536269514722
_TELLING = 0.01
"""Groups that leak less than this more than the rest are not called worse, however sure that is."""

Key = tuple[str, str | None]
Compared = Callable[[Values, Values, float], tuple[float, Interval]]
Groups = tuple[str, list[str], npt.NDArray[np.intp]]


@dataclass(frozen=True)
class AskedPeople:
    """What an attack got of each candidate, NaN where it did not ask; who were members; their labels by class."""

    values: Values
    members: npt.NDArray[np.bool_]
    ids: npt.NDArray[Any]
    labels: Mapping[str, tuple[tuple[str, ...], IntArray]]

    @classmethod
    def of(cls, values: Values, truth: Truth) -> AskedPeople:
        people = truth.open()
        labels = {**people.utility, **people.private}
        named = {name: people.schema.groups(name, codes) for name, codes in labels.items()}
        return cls(np.asarray(values, dtype=np.float64), truth.members() == 1, people.ids, named)

    def sides(self, rows: npt.NDArray[np.bool_]) -> tuple[Values, Values]:
        """Values of members and of strangers among these."""
        asked = rows & ~np.isnan(self.values)
        return self.values[asked & self.members], self.values[asked & ~self.members]


def held_out_exposures(scores: Sequence[Score], asked: Mapping[Key, AskedPeople]) -> dict[str, Any]:
    """By question, in the form of ``auditing.exposure.exposures``; ``score`` of a group is its excess."""
    worst = {
        key: (score, asked[score.attack, score.target])
        for key, score in worst_by_threat(_reaching(scores, asked)).items()
        if score.leakage is not None
    }
    groups = {key: list(_groups(people)) for key, (_, people) in worst.items()}
    comparisons = max(1, sum(len(names) for of in groups.values() for _, names, _ in of))
    confidence = 1.0 - (1.0 - CONFIDENCE) / comparisons
    return {key: _exposure(score, people, groups[key], confidence) for key, (score, people) in worst.items()}


def _reaching(scores: Sequence[Score], asked: Mapping[Key, AskedPeople]) -> list[Score]:
    """The scores that say who is worst off. An attack that finds nothing and asks some people alone says less than one
    that asks everybody."""
    found = [score for score in scores if (score.attack, score.target) in asked]
    everybody = [not np.isnan(asked[score.attack, score.target].values).any() for score in found]
    about = {(score.threat, score.target) for score, all_of_them in zip(found, everybody, strict=True) if all_of_them}
    return [
        score
        for score, all_of_them in zip(found, everybody, strict=True)
        if all_of_them or score.leakage or (score.threat, score.target) not in about
    ]


def _exposure(score: Score, people: AskedPeople, groups: Sequence[Groups], confidence: float) -> dict[str, Any]:
    found = [
        _of_group(score, people, column, name, group == number, confidence)
        for column, names, group in groups
        for number, name in enumerate(names)
    ]
    rows, each = _of_each(people)
    above = (each > THRESHOLD).astype(np.float64)
    first = np.lexsort((-each, -people.values[rows]))[:_MOST_EXPOSED]
    return {
        "attack": score.attack,
        "metric": score.metric,
        "groups": found,
        "worst_group": max(found, key=lambda one: float(one["leakage"]), default=None),
        "share_above": {
            "threshold": THRESHOLD,
            "share": float(above.mean()),
            "ci": [float(end) for end in share_interval(above)],
            "people": len(rows),
        },
        "most_exposed": [
            {"id": str(people.ids[rows[at]]), "leakage": float(each[at]), "score": float(people.values[rows[at]])}
            for at in first
        ],
    }


def _groups(people: AskedPeople) -> Iterator[Groups]:
    """For every label the names of its groups and the group of each candidate (−1: none).

    A group has enough members and enough strangers; smaller ones are pooled.
    """
    asked = ~np.isnan(people.values)

    def enough(rows: npt.NDArray[np.bool_]) -> bool:
        return all((rows & asked & side).sum() >= FEWEST for side in (people.members, ~people.members))

    for label, (classes, codes) in people.labels.items():
        names: list[str] = []
        group = np.full(len(codes), -1, dtype=np.intp)
        for code, name in enumerate(classes):
            if enough(codes == code):
                group[codes == code] = len(names)
                names.append(name)
        if enough(group == -1):
            group[group == -1] = len(names)
            names.append(SMALLER)
        if len(names) > 1 or (names and (group == -1).any()):
            yield label, names, group


def _of_group(
    score: Score, people: AskedPeople, column: str, name: str, rows: npt.NDArray[np.bool_], confidence: float
) -> dict[str, Any]:
    compared = _advantage if score.metric == "advantage" else _excess
    room = float(score.control or 0.0) - float(score.baseline or 0.0)
    excess, (low, high) = compared(*people.sides(rows), confidence)
    shares = [min(1.0, max(0.0, end / room)) for end in (excess, low, high)]
    members = int((rows & people.members & ~np.isnan(people.values)).sum())
    return {
        "column": column,
        "value": name,
        "n": members,
        "people": members,
        "score": excess,
        "ci": [low, high],
        "leakage": shares[0],
        "leakage_ci": shares[1:],
        "worse": _worse(people, rows, compared, confidence, room),
    }


def _excess(inside: Values, outside: Values, confidence: float) -> tuple[float, Interval]:
    return float(inside.mean() - outside.mean()), difference_interval(inside, outside, confidence)


def _advantage(inside: Values, outside: Values, confidence: float) -> tuple[float, Interval]:
    """Of a group's members over its strangers: strangers of some groups are more suspicious than those of others."""
    low, high = area_interval(inside, outside, confidence)
    above = np.searchsorted(np.sort(outside), inside, "left") + np.searchsorted(np.sort(outside), inside, "right")
    return float(above.mean()) / len(outside) - 1.0, (2.0 * low - 1.0, 2.0 * high - 1.0)


def _worse(
    people: AskedPeople, rows: npt.NDArray[np.bool_], compared: Compared, confidence: float, room: float
) -> bool:
    """Whether the group's excess is above that of the rest, by the intervals of both (Zou and Donner)."""
    rest = people.sides(~rows)
    if not len(rest[0]) or not len(rest[1]):
        return False
    here, (low, _) = compared(*people.sides(rows), confidence)
    there, (_, high) = compared(*rest, confidence)
    return here - there - math.hypot(here - low, high - there) > 0.0 and here - there >= _TELLING * room


def _of_each(people: AskedPeople) -> tuple[npt.NDArray[np.intp], Values]:
    """The members that were asked for, and the leakage of each."""
    rows = np.flatnonzero(people.members & ~np.isnan(people.values))
    inside, outside = people.sides(np.ones(len(people.values), dtype=bool))
    as_much = [len(side) - np.searchsorted(np.sort(side), inside) for side in (inside, outside)]
    luck = np.array([wilson(float(count), len(outside), _ONE_SIDED)[1] for count in as_much[1]])
    beyond = np.clip(1.0 - luck * len(inside) / as_much[0], 0.0, 1.0)
    order = np.argsort(inside, kind="stable")
    most = np.maximum.accumulate(beyond[order])
    return rows, most[np.searchsorted(inside[order], inside, "right") - 1]
