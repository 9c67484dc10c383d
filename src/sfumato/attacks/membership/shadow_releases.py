"""Membership by other releases of the same maker: what would this one look like with the record, and without it?

The maker is run on random halves of the people, so that half of the shadow releases have seen each candidate. A signal
φ says how closely a release fits a record; records differ in how closely they are fitted anyway, so φ of the audited
release is compared with what it is for each record with and without it (LiRA, Carlini et al. 2022; Stadler et al. 2022
for synthetic data).
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from sfumato.attacks.coded_rows import distances, nearest
from sfumato.attacks.membership.coded_records import CodedMembership
from sfumato.attacks.membership.training_records import halves, log_ratio
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release

_CROWD = 10
_WIDTH = 3.0
"""Part of the median distance to a released row that is the width of a kernel."""
_SOME = 500
"""Records by which the width is chosen."""
_PRIOR = 4.0
"""Shadow releases that the spread of all records counts for, beside a record's own."""
_TREES, _LEAVES, _RATE = 100, 15, 0.05

Signals = npt.NDArray[np.float64]
"""How closely releases fit each record: (…, signals, N), the higher the closer."""
Found = tuple[Signals, Signals, npt.NDArray[np.bool_]]


class ShadowSignals:
    """φ of the audited release and of all shadow releases, for the attacks that compare these: made once."""

    def __init__(self, shadows: int) -> None:
        self.shadows = shadows
        self._kept: deque[tuple[object, str, Found]] = deque(maxlen=2)  # of the release, and of its control

    def __repr__(self) -> str:
        return f"ShadowSignals({self.shadows})"

    def of(self, release: Release, knowledge: Knowledge) -> Found:
        """φ of the release (S, N), of the shadow releases (K, S, N), and which candidates each of these has seen."""
        remake, candidates = knowledge.remake, knowledge.candidates
        assert remake is not None and candidates is not None  # obstacle() has seen to it
        for maker, digest, found in self._kept:
            if maker is remake and digest == release.digest:
                return found
        inside = halves(len(candidates), self.shadows, derive_seed(knowledge.seed, "shadow releases"))
        seen = [
            _signals(remake(np.flatnonzero(rows), number), candidates.x, knowledge)
            for number, rows in enumerate(inside)
        ]
        made = _signals(release.payload, candidates.x, knowledge), np.stack(seen), inside
        self._kept.append((remake, release.digest, made))
        return made


class ShadowMembership(CodedMembership):
    """φ of the release against what it is with and without each record."""

    version = 1
    slow = True
    signals: ShadowSignals

    def obstacle(self, knowledge: Knowledge) -> str | None:
        alone = "needs releases of other records by the same maker"
        return super().obstacle(knowledge) or (alone if knowledge.remake is None else None)

    def suspicion(self, release: Release, candidates: Dataset, knowledge: Knowledge) -> npt.NDArray[np.floating]:
        target, seen, inside = self.signals.of(release, knowledge)
        return self.ratio(target, seen, inside, derive_seed(knowledge.seed, self.name) % 2**32)

    @abstractmethod
    def ratio(self, target: Signals, seen: Signals, inside: npt.NDArray[np.bool_], seed: int) -> Signals:
        """The log of how much likelier the signals are with the record than without it, as far as one can tell."""


class ReleaseRatio(ShadowMembership):
    """Σ over the signals of log p(φ | in) − log p(φ | out), both normal, the spread drawn to that of all records."""

    name = "member-shadow-ratio"
    title = "Likelihood ratio of shadow releases"
    how = "how closely the release fits a record, against releases with and without it"

    def ratio(self, target: Signals, seen: Signals, inside: npt.NDArray[np.bool_], seed: int) -> Signals:
        spread = _spread(seen, inside)
        ratios = [log_ratio(target[at] / spread[at], seen[:, at] / spread[at], inside) for at in range(len(target))]
        return np.asarray(np.sum(ratios, axis=0))


class LearntRatio(ShadowMembership):
    """Boosted trees learn the ratio from all pairs of a record and a shadow release: signals beside what the other
    shadow releases say of the record with and without it."""

    name = "member-shadow-learnt"
    title = "Ratio learnt from shadow releases"
    how = "trees that learn from shadow releases how a record shows that was in"

    def ratio(self, target: Signals, seen: Signals, inside: npt.NDArray[np.bool_], seed: int) -> Signals:
        from sklearn.ensemble import HistGradientBoostingClassifier

        spread = _spread(seen, inside)
        shadows = np.arange(len(seen))
        rows = [_beside(seen[number], seen[shadows != number], inside[shadows != number], spread) for number in shadows]
        model = HistGradientBoostingClassifier(
            max_iter=_TREES, learning_rate=_RATE, max_leaf_nodes=_LEAVES, random_state=seed
        )
        model.fit(np.concatenate(rows), inside.ravel())
        return np.asarray(model.decision_function(_beside(target, seen, inside, spread)))


def _signals(rows: FloatArray, points: FloatArray, knowledge: Knowledge) -> Signals:
    """Minus the log distance to the nearest row, to the nearest ten, and by numbers; exact values shared with one row;
    the log density. Each less its median: releases differ in how close they are to everybody."""
    from scipy.special import logsumexp

    columns = knowledge.columns
    small = 1.0 / (100.0 * len(columns))
    numbers = [place for place, one in enumerate(columns) if one.number]
    width = max(float(np.median(nearest(points[:_SOME], rows, columns)[1])) / _WIDTH, small) * len(columns)
    few = min(_CROWD, len(rows))
    one, several, dense, shared = np.empty((4, len(points)))
    for where, apart in distances(points, rows, columns):
        crowd = np.partition(apart, few - 1, axis=1)[:, :few] / len(columns)
        one[where], several[where] = crowd.min(axis=1), crowd.mean(axis=1)
        dense[where] = logsumexp(-apart / width, axis=1) - np.log(len(rows))
    codes = [replace(column, categories=max(1, column.categories)) for column in columns]
    for where, apart in distances(points, rows, codes):
        shared[where] = -apart.min(axis=1)
    found = [-np.log(one + small), -np.log(several + small), shared, dense]
    if numbers and len(numbers) < len(columns):
        found.append(-np.log(nearest(points, rows, columns, 1, numbers)[1][:, 0] + small))
    signals = np.stack(found)
    return np.asarray(signals - np.median(signals, axis=1, keepdims=True))


def _with_and_without(seen: Signals, inside: npt.NDArray[np.bool_]) -> tuple[Signals, Signals]:
    """The mean signals of each record in the releases that have seen it, and in the others: (S, N) each."""
    known = inside[:, None, :]
    counts = np.maximum(known.sum(axis=0), 1), np.maximum((~known).sum(axis=0), 1)
    return (seen * known).sum(axis=0) / counts[0], (seen * ~known).sum(axis=0) / counts[1]


def _spread(seen: Signals, inside: npt.NDArray[np.bool_]) -> Signals:
    """The deviation of each record's signals, drawn to that of all records: (S, N)."""
    within, without = _with_and_without(seen, inside)
    apart = ((seen - np.where(inside[:, None, :], within, without)) ** 2).sum(axis=0)
    freedom = max(1, len(seen) - 2)
    pooled = apart.mean(axis=1, keepdims=True) / freedom
    return np.asarray(np.sqrt((apart + _PRIOR * pooled) / (freedom + _PRIOR)) + 1e-9)


def _beside(signals: Signals, others: Signals, inside: npt.NDArray[np.bool_], spread: Signals) -> Signals:
    """What the trees see of each record: (N, 3·S)."""
    within, without = _with_and_without(others, inside)
    return np.concatenate([(signals - (within + without) / 2.0) / spread, (within - without) / spread, signals]).T
