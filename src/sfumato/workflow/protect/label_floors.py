"""What cannot be hidden because a useful label tells it: known before anything is trained.

Somebody who reads the utility label u guesses the private label y by its shares among people with that u. Whatever is
released, a reader who gets u right for a share a of all people can make the same guess from what was read, and differs
from the guess by the true label for 1 − a of the people at most:

    accuracy(y | read u) ≥ accuracy(y | u) − (1 − a).

With the limit on accuracy as a, this is a floor for every mechanism that keeps that limit. Where both labels have two
classes, let Δ be the difference of the shares of u among the two classes of y, the rarer of which has the share p. As
(1 − a)/p people of 100 % in both classes together are read wrong at most (the bound of Zhao and Gordon, 2019),

    AUROC(y | read u) ≥ ½ + ½ (Δ − (1 − a)/p).

Leakage is a share of the way to the best attack on undefended data, which is right for everybody at most:

    leakage ≥ (accuracy − majority) / (1 − majority)   and   leakage ≥ (AUROC − ½) / ½.

All three are the least that leaks. A release whose errors do not happen to hide y tells more, which the audit measures
(its attack by the useful label).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import Dataset, IntArray, Splits
from sfumato.core.errors import UsageError
from sfumato.core.intervals import bootstrap, difference_interval, share_interval
from sfumato.core.metrics import auroc_statistic
from sfumato.core.policy import Policy
from sfumato.core.threats import ATTRIBUTE
from sfumato.workflow.protect.goal import Goal

_BINS = 10
"""Classes of a number, with as many people in each."""
_SHOWN = 0.005
_CERTAIN = 0.999
"""Who is right so often knows."""


@dataclass(frozen=True)
class LabelFloor:
    """What ``utility`` tells about ``private``: how often the guess is right (with its interval) where the label is
    known, and ``guessing`` where it is not; ``area`` is the AUROC of that guess. ``least`` is the floor of that
    accuracy for a release that serves the label with accuracy ``served`` (1: the label itself leaves), ``least_area``
    that of the AUROC, with the end of its interval that is best for the owner in ``sure_area``."""

    utility: str
    private: str
    accuracy: float
    ci: tuple[float, float]
    guessing: float
    served: float
    people: int
    area: float
    least_area: float
    sure_area: float

    @property
    def least(self) -> float:
        return max(self.guessing, self.accuracy - (1.0 - self.served))

    @property
    def sure(self) -> float:
        """The same by the end of the interval that is best for the owner."""
        return max(self.guessing, self.ci[0] - (1.0 - self.served))

    @property
    def advantage(self) -> float:
        return self.least - self.guessing

    @property
    def leakage(self) -> float:
        """The least leakage, by the worse of the two metrics."""
        by_area = 2.0 * (self.least_area - 0.5)
        return max((self.least - self.guessing) / max(1.0 - self.guessing, 1e-9), by_area)

    @property
    def sure_leakage(self) -> float:
        by_area = 2.0 * (self.sure_area - 0.5)
        return max((self.sure - self.guessing) / max(1.0 - self.guessing, 1e-9), by_area)

    @property
    def known(self) -> bool:
        """Whether one label follows from the other."""
        return self.accuracy >= _CERTAIN and self.guessing < _CERTAIN

    def __str__(self) -> str:
        low, high = self.ci
        told = (
            f"who knows '{self.utility}' guesses '{self.private}' right for {self.accuracy:.1%} "
            f"[{low:.1%}, {high:.1%}] of people, and without it for {self.guessing:.1%} (AUROC {self.area:.2f})"
        )
        if self.accuracy - self.guessing < _SHOWN and self.area < 0.5 + _SHOWN:
            return f"{told}: the useful label tells nothing about '{self.private}'"
        if self.leakage < _SHOWN:
            return f"{told}; a release that serves it with accuracy {self.served:.2g} need not tell that"
        return (
            f"{told}: no mechanism that serves '{self.utility}' with accuracy {self.served:.2g} can keep the advantage "
            f"below {self.advantage:.3f} and the AUROC below {self.least_area:.2f}, a leakage of {self.leakage:.0%}"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "ci": list(self.ci),
            "least": self.least,
            "advantage": self.advantage,
            "leakage": self.leakage,
        }


def label_floors(splits: Splits, goal: Goal) -> tuple[LabelFloor, ...]:
    """A floor for each pair of a utility and a private label, by the attacker's shares on the victims."""
    return tuple(
        _floor(splits.attacker, splits.victim, useful, hidden, _served(goal, useful))
        for useful in splits.victim.utility
        for hidden in splits.victim.private
    )


def check_follows(floors: tuple[LabelFloor, ...], policy: Policy) -> None:
    """Raise if a label that is to be hidden is known to whoever reads one that is to be served."""
    for one in floors:
        limited = any(
            asked.what.startswith(ATTRIBUTE) and asked.label in (None, one.private) for asked in policy.thresholds
        )
        if one.known and limited:
            raise UsageError(
                f"'{one.private}' follows from '{one.utility}' (right for {one.accuracy:.1%} of {one.people:,} "
                "people): who may use the one knows the other, so leave it out of --private, or serve another label."
            )


def beyond_reach(floors: tuple[LabelFloor, ...], policy: Policy) -> Iterator[tuple[str, float, LabelFloor]]:
    """The limits that no mechanism can keep: the limit, the least that it would have to be, and the floor."""
    for asked in policy.thresholds:
        if asked.limit != "max" or asked.what.partition("-with")[0] != ATTRIBUTE:
            continue
        for one in floors:
            if asked.label not in (None, one.private):
                continue
            least = one.sure_leakage if asked.share else one.sure - one.guessing
            if least > asked.value:
                yield str(asked), least, one


def _served(goal: Goal, label: str) -> float:
    """How well the policy wants a label to be served; a release with its labels serves them all."""
    if goal.labels:
        return 1.0
    limits = [
        one.value
        for one in goal.policy.thresholds
        if one.limit == "min" and one.what == "accuracy" and one.label in (None, label)
    ]
    return max(limits, default=0.0)


def _floor(attacker: Dataset, victim: Dataset, useful: str, hidden: str, served: float) -> LabelFloor:
    edges = _edges(attacker, useful)
    seen, asked = _classes(attacker, useful, edges), _classes(victim, useful, edges)
    bounds = _edges(attacker, hidden)
    own, true = _classes(attacker, hidden, bounds), _classes(victim, hidden, bounds)
    counts = np.zeros((int(max(seen.max(), asked.max())) + 1, int(max(own.max(), true.max())) + 1))
    np.add.at(counts, (seen, own), 1.0)
    counts += counts.sum(axis=0) / max(1.0, counts.sum())
    right = (counts.argmax(axis=1)[asked] == true).astype(np.float64)
    served = 0.0 if useful in victim.schema.numbers else served
    area, least, sure = _areas(counts / counts.sum(axis=1, keepdims=True), asked, true, served)
    return LabelFloor(
        utility=useful,
        private=hidden,
        accuracy=float(right.mean()),
        ci=share_interval(right, victim.ids),
        guessing=float(np.bincount(true).max() / len(true)),
        served=served,
        people=len(np.unique(victim.ids)),
        area=area,
        least_area=least,
        sure_area=sure,
    )


def _areas(
    shares: npt.NDArray[np.float64], asked: IntArray, true: IntArray, served: float
) -> tuple[float, float, float]:
    """The AUROC of the guess; its floor for a release that serves the label with that accuracy; and the floor's end
    that is best for the owner. ½ where nothing is known of a floor."""
    guess = shares[asked].astype(np.float32)
    area = float(auroc_statistic(true, guess)(np.ones(len(true))))
    if served >= 1.0:
        low, _ = bootstrap(auroc_statistic(true, guess), len(true), resamples=200, limits=(0.0, 1.0))
        return area, max(0.5, area), max(0.5, low)
    if shares.shape != (2, 2):
        return area, 0.5, 0.5
    first, second = (asked == 1)[true == 0].astype(float), (asked == 1)[true == 1].astype(float)
    rare = min(len(first), len(second)) / len(true)
    low, high = difference_interval(first, second)
    gap, sure = abs(first.mean() - second.mean()), 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
    least, end = (0.5 + 0.5 * max(0.0, one - (1.0 - served) / rare) for one in (gap, sure))
    return area, float(least), float(end)


def _edges(data: Dataset, label: str) -> npt.NDArray[np.float64] | None:
    if label not in data.schema.numbers:
        return None
    found: npt.NDArray[np.float64] = np.unique(np.quantile(data.numbers(label), np.linspace(0, 1, _BINS + 1)[1:-1]))
    return found


def _classes(data: Dataset, label: str, edges: npt.NDArray[np.float64] | None) -> IntArray:
    if edges is None:
        return data.label(label)
    return np.searchsorted(edges, data.numbers(label), side="right").astype(np.int64)
