"""Membership in a release of mixed columns: distances by ranks and categories, beside the attacker's own records.

How far a record is from the release says little of a record that is far from everybody; most attacks here set it
against the distance to the attacker's own people, who were not in the data.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sfumato.attacks.base import Guess, Measured
from sfumato.attacks.coded_rows import distances, nearest, one_hot
from sfumato.attacks.membership.synthetic_records import MembershipAttack
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.intervals import CONFIDENCE, area_interval
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.metrics import Values
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release

_MOST = 20_000
_BY_NUMBERS = ", by numbers"
_TREES = 60
_CROWD = 10


class CodedMembership(MembershipAttack):
    """With an interval that covers ``among`` attacks on the question."""

    version: ClassVar[int] = 2
    among: int = 1

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return super().obstacle(knowledge) or (None if knowledge.columns else "needs columns")

    def measure(self, guess: Guess, truth: Truth) -> list[Measured]:
        members = truth.members() == 1
        low, high = area_interval(guess[members], guess[~members], 1.0 - (1.0 - CONFIDENCE) / self.among)
        advantage, area, *others = super().measure(guess, truth)
        gain = (min(2.0 * low - 1.0, advantage.value), max(2.0 * high - 1.0, advantage.value))
        return [
            replace(advantage, ci=gain),
            replace(area, ci=(min(low, area.value), max(high, area.value))),
            *others,
        ]


class DistanceMembership(CodedMembership):
    """By distances over all columns, or over the ``numbers`` alone: few people agree in these, many in categories."""

    numbers: bool = False
    kind: ClassVar[str]

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"member-{'numbers' if self.numbers else 'row'}-{self.kind}"

    def nearest(self, points: FloatArray, among: FloatArray, knowledge: Knowledge, k: int = 1) -> Values:
        """The mean distances a column to the k nearest rows, (N, k)."""
        columns = knowledge.columns
        used = [place for place, one in enumerate(columns) if one.number] if self.numbers else None
        return nearest(points, among, columns, k, used)[1]


class NearestCoded(DistanceMembership):
    """−distance to the nearest released row."""

    kind = "nearest"

    @property
    def title(self) -> str:  # type: ignore[override]
        return f"Nearest row{_BY_NUMBERS if self.numbers else ''}"

    def suspicion(self, release: Release, candidates: Dataset, knowledge: Knowledge) -> npt.NDArray[np.floating]:
        return np.asarray(-self.nearest(candidates.x, release.payload, knowledge)[:, 0])


class NearerThanOthers(DistanceMembership):
    """log of the distance to the attacker's nearest people over the distance to the nearest released row."""

    kind = "nearer"

    @property
    def title(self) -> str:  # type: ignore[override]
        return f"Nearer than to others{_BY_NUMBERS if self.numbers else ''}"

    def suspicion(self, release: Release, candidates: Dataset, knowledge: Knowledge) -> npt.NDArray[np.floating]:
        there = self.nearest(candidates.x, release.payload, knowledge)[:, 0]
        here = self.nearest(candidates.x, knowledge.auxiliary.x, knowledge, 3).mean(axis=1)
        small = 1.0 / (100.0 * max(1, len(knowledge.columns)))
        return np.asarray(np.log(here + small) - np.log(there + small))


class StandsOut(DistanceMembership):
    """How much nearer the nearest released row is than the next ones: a copy stands out from the crowd around it."""

    kind = "alone"

    @property
    def title(self) -> str:  # type: ignore[override]
        return f"Nearest against the next{_BY_NUMBERS if self.numbers else ''}"

    def suspicion(self, release: Release, candidates: Dataset, knowledge: Knowledge) -> npt.NDArray[np.floating]:
        apart = self.nearest(candidates.x, release.payload, knowledge, _CROWD)
        return np.asarray(apart[:, -1] - apart[:, 0] if apart.shape[1] > 1 else -apart[:, 0])


class CodedDensity(CodedMembership):
    """log of the density of the release at the record over that of the attacker's people; kernels of two widths.

    exp(−distance / width), with a third and a tenth of the attacker's median distance to a neighbour as widths.
    """

    name = "member-row-density"
    title = "Ratio of densities"
    how = "denser in the release than among the attacker's own people"

    def suspicion(self, release: Release, candidates: Dataset, knowledge: Knowledge) -> npt.NDArray[np.floating]:
        own = knowledge.auxiliary.x
        apart = nearest(own[:500], own, knowledge.columns, 2)[1][:, -1]
        middle = max(float(np.median(apart)), 1e-4) * len(knowledge.columns)
        total = np.zeros(len(candidates))
        for part in (3.0, 10.0):
            densities = [_log_density(candidates.x, rows, knowledge, middle / part) for rows in (release.payload, own)]
            total += (densities[0] - densities[1]) / part
        return total


class ReleasedOrNot(CodedMembership):
    """Fully grown trees tell released rows from the attacker's own people; copies they know by heart."""

    name = "member-row-trees"
    title = "Trees of released or not"
    how = "trees that tell released rows from the attacker's own people"

    def suspicion(self, release: Release, candidates: Dataset, knowledge: Knowledge) -> npt.NDArray[np.floating]:
        from sklearn.ensemble import ExtraTreesClassifier

        seed = derive_seed(knowledge.seed, self.name) % 2**32
        rng = np.random.default_rng(seed)
        released, own = (x[np.sort(rng.permutation(len(x))[:_MOST])] for x in (release.payload, knowledge.auxiliary.x))
        rows = one_hot(np.concatenate([released, own]), knowledge.columns)
        which = np.repeat([1, 0], [len(released), len(own)])
        model = ExtraTreesClassifier(_TREES, class_weight="balanced", random_state=seed).fit(rows, which)
        return np.asarray(model.predict_proba(one_hot(candidates.x, knowledge.columns))[:, 1])


def _log_density(points: FloatArray, among: FloatArray, knowledge: Knowledge, width: float) -> npt.NDArray[np.float64]:
    from scipy.special import logsumexp

    found = np.empty(len(points))
    for rows, apart in distances(points, among, knowledge.columns):
        found[rows] = logsumexp(-apart / width, axis=1)
    return np.asarray(found - np.log(len(among)))
