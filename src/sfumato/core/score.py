"""A measured figure with everything needed to trust it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.errors import RuleBroken
from sfumato.core.threats import Direction

_NOT_STORED = ("limits", "each", "whose", "rows", "guessed")


@dataclass(frozen=True)
class Score:
    """One metric of one attack or task.

    ``baseline`` is what a guesser without the release gets; ``control`` what the best attack of the same threat gets
    with no defence, ``own_control`` what this one gets there, ``encoder_control`` what the best one gets from the same
    encoder without its noise. ``better_for_owner`` tells the direction; ``limits`` is the range of the metric.
    ``primary`` marks the metric by which attacks of one threat are ranked. ``leakage`` is a share of 1, see
    ``core.leakage``: from the baseline to the control, by the metric ``leakage_by``; ``encoder_leakage`` the same to
    the encoder's control. ``follows`` is the utility label from which alone the guess follows: no mechanism that serves
    it as well can be below that figure. ``releases`` of each record were averaged. Figures of different versions of an
    attack are not to be compared. ``n`` records are of so many ``people``. ``group`` is the private label whose classes
    a figure compares, and ``note`` what must be said beside it.

    ``each`` is the value of each record, ``guessed`` that of the guesser without the release, ``whose`` the person of
    each and ``rows`` its place among the audit's victims (None: all of them in their order; −1: not known): figures of
    two mechanisms over the same victims are compared record by record. They are no part of the JSON (``each_record``).
    """

    attack: str
    threat: str
    metric: str
    better_for_owner: Direction
    value: float
    ci: tuple[float, float]
    baseline: float | None
    control: float | None
    n: int
    seconds: float
    primary: bool = False
    target: str | None = None
    limits: tuple[float, float] = (-math.inf, math.inf)
    attack_version: int = 1
    leakage: float | None = None
    leakage_ci: tuple[float, float] | None = None
    leakage_by: str | None = None
    own_control: float | None = None
    encoder_control: float | None = None
    encoder_leakage: float | None = None
    follows: str | None = None
    releases: int = 1
    people: int | None = None
    group: str | None = None
    note: str = ""
    each: npt.NDArray[np.float64] | None = field(default=None, repr=False, compare=False)
    whose: npt.NDArray[Any] | None = field(default=None, repr=False, compare=False)
    guessed: npt.NDArray[np.float64] | None = field(default=None, repr=False, compare=False)
    rows: npt.NDArray[Any] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        low, high = self.limits
        slack = 1e-6 * max(1.0, abs(self.value))
        if not low - slack <= self.value <= high + slack:
            raise RuleBroken(f"{self.attack}: {self.metric} = {self.value} is outside its range [{low}, {high}].")
        if not self.ci[0] - slack <= self.value <= self.ci[1] + slack:
            raise RuleBroken(f"{self.attack}: {self.metric} = {self.value} is outside its interval {self.ci}.")

    def to_json(self) -> dict[str, Any]:
        value = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NOT_STORED}
        return {**value, "ci": list(self.ci), "leakage_ci": None if self.leakage_ci is None else list(self.leakage_ci)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Score:
        shares = value.get("leakage_ci")
        both = {"ci": tuple(value["ci"]), "leakage_ci": None if shares is None else tuple(shares)}
        absent = {"own_control": value["control"], "n": 0, "seconds": 0.0}  # older files; papers that tell no counts
        return cls(**{**absent, **value, **both})

    @property
    def key(self) -> str:
        """What tells it from the other scores of its audit."""
        return "|".join([self.attack, self.target or "", self.metric, *([self.group] if self.group else [])])

    @property
    def about(self) -> str | None:
        """The label that it is about: "income", or "income by sex" where groups are compared."""
        return f"{self.target} by {self.group}" if self.group else self.target

    def worse_than(self, other: Score) -> bool:
        """Whether this score is worse for the owner than ``other`` (same threat): it leaks more or, where both leak as
        much, could leak more; where that says nothing, its metric is worse."""
        if self.leakage is not None and other.leakage is not None and self.leakage != other.leakage:
            return self.leakage > other.leakage
        if self.leakage_ci is not None and other.leakage_ci is not None and self.leakage_ci[1] != other.leakage_ci[1]:
            return self.leakage_ci[1] > other.leakage_ci[1]
        return self.value < other.value if self.better_for_owner == "higher" else self.value > other.value


def worst_by_threat(scores: Iterable[Score]) -> dict[str, Score]:
    """The worst primary score of each threat; a threat against several private labels counts as one per label."""
    worst: dict[str, Score] = {}
    for score in scores:
        if not score.primary:
            continue
        threat = score.threat if score.target is None else f"{score.threat}:{score.target}"
        if threat not in worst or score.worse_than(worst[threat]):
            worst[threat] = score
    return worst


def mixed_versions(seen: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """The attacks that were seen in more than one version, of names and versions."""
    found: dict[str, set[int]] = {}
    for attack, version in seen:
        found.setdefault(attack, set()).add(version)
    return {attack: sorted(versions) for attack, versions in sorted(found.items()) if len(versions) > 1}


def each_record(scores: Iterable[Score]) -> dict[str, npt.NDArray[Any]]:
    """Every score's values record by record under its key; under ``key|person`` a number for whose they are where
    somebody has several records, and under ``key|row`` their places among the victims where they are not all of them.
    """
    found: dict[str, npt.NDArray[Any]] = {}
    for score in scores:
        if score.each is None:
            continue
        found[score.key] = score.each.astype(np.float32)
        if score.rows is not None:
            found[f"{score.key}|row"] = score.rows.astype(np.int32)
        if score.whose is not None and score.people != score.n:
            found[f"{score.key}|person"] = np.unique(score.whose, return_inverse=True)[1].astype(np.int32)
    return found
