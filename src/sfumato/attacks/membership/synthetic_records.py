"""Membership: was this record among those that a synthetic data set was learnt from?

The attacker sees the synthetic records with their labels and holds other real records. It is shown candidates, half of
them the owner's, and gives each a score: the higher, the more likely a member.

The advantage is 2·AUROC − 1: how much more often a member scores above a stranger than below. No threshold is chosen,
so none is chosen by the truth. At a low false-positive rate stands how many members an attacker finds that must hardly
ever accuse a stranger.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from sfumato.attacks.base import Attack, Guess, Measured
from sfumato.attacks.membership.overfitted_classifier import fit_memoriser
from sfumato.core import metrics
from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.intervals import bootstrap
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.metrics import Values
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release
from sfumato.core.schema import Schema

TPR = {"tpr-at-1-fpr": 0.01, "tpr-at-0.1-fpr": 0.001}
"""True positive rates at low false positive rates."""
_BLOCK = 512
"""Candidates that are compared with all records at once."""
_MOST = 20_000
"""Records from which densities and classifiers are learnt."""
_COMPONENTS = 32


class MembershipAttack(Attack):
    """The guess is a score for each of ``knowledge.candidates``, (N,)."""

    threat = "membership"

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return "needs candidates" if knowledge.candidates is None else None

    def expected(self, release: Release, knowledge: Knowledge) -> int:
        return len(_candidates(knowledge))

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        return np.asarray(self.suspicion(release, _candidates(knowledge), knowledge), dtype=np.float32)

    @abstractmethod
    def suspicion(self, release: Release, candidates: Dataset, knowledge: Knowledge) -> npt.NDArray[np.floating]:
        """The score of each candidate: the higher, the more likely a member."""

    def trivial(self, knowledge: Knowledge, n: int) -> FloatArray:
        """Without the release every candidate is as suspicious."""
        return np.zeros(n, dtype=np.float32)

    def of_each(self, guess: Guess, truth: Truth) -> dict[str | None, Values]:
        """How many of the strangers are less suspicious than each candidate; those as suspicious count half."""
        strangers = np.sort(guess[truth.members() == 0])
        below, up_to = (np.searchsorted(strangers, guess, side) for side in ("left", "right"))
        return {None: (below + up_to) / (2.0 * max(1, len(strangers)))}

    def measure(self, guess: Guess, truth: Truth) -> list[Measured]:
        members, ids = truth.members(), truth.open().ids
        both = np.stack([-guess, guess], axis=1)
        every = np.ones(len(members))
        area = metrics.auroc_statistic(members, both)
        low, high = bootstrap(area, len(members), ids, limits=(0.0, 1.0))
        found = {name: metrics.tpr_statistic(members, guess, fpr) for name, fpr in TPR.items()}
        auroc = area(every)
        gain = (2.0 * low - 1.0, 2.0 * high - 1.0)
        return [
            Measured("advantage", "lower", 2.0 * auroc - 1.0, gain, (-1.0, 1.0), primary=True),
            Measured("auroc", "lower", auroc, (low, high), (0.0, 1.0)),
            *(
                Measured(name, "lower", rate(every), bootstrap(rate, len(members), ids, limits=(0.0, 1.0)), (0.0, 1.0))
                for name, rate in found.items()
            ),
        ]


class NearestSynthetic(MembershipAttack):
    """−‖x − nearest synthetic record‖: a model that copies its records is found out by the copies.

    ``within`` compares with synthetic records of the candidate's own class only.
    """

    within: bool = False

    @property
    def name(self) -> str:  # type: ignore[override]
        return "member-nearest-class" if self.within else "member-nearest"

    @property
    def title(self) -> str:  # type: ignore[override]
        return "Nearest of the same class" if self.within else "Nearest synthetic record"

    def suspicion(self, release: Release, candidates: Dataset, knowledge: Knowledge) -> npt.NDArray[np.floating]:
        points, among = _flat(candidates.x), _flat(release.payload)
        if not self.within:
            return -nearest_distance(points, among)
        own, theirs = _classes(release.utility, candidates)
        scores = np.empty(len(points))
        for code in np.unique(own):
            rows = own == code
            same = theirs == code
            scores[rows] = -nearest_distance(points[rows], among[same] if same.any() else among)
        return scores


class DensityRatio(MembershipAttack):
    """log p_synthetic(x) − log p_auxiliary(x), both by Gaussian kernels in principal components (as DOMIAS does).

    A model that overfits puts more weight on its records than the population has there. The kernels are as wide as a
    third of the median distance of an auxiliary record to its nearest neighbour.
    """

    name = "member-density"
    title = "Ratio of densities"

    def suspicion(self, release: Release, candidates: Dataset, knowledge: Knowledge) -> npt.NDArray[np.floating]:
        from sklearn.decomposition import PCA

        seed = derive_seed(knowledge.seed, self.name) % 2**32
        synthetic, real = (_some(_flat(x), seed) for x in (release.payload, knowledge.auxiliary.x))
        both = np.concatenate([synthetic, real])
        narrow = PCA(min(_COMPONENTS, *both.shape), svd_solver="randomized", random_state=seed).fit(both)
        points, synthetic, real = (
            narrow.transform(x).astype(np.float32) for x in (_flat(candidates.x), synthetic, real)
        )
        width = max(float(np.median(_second_nearest(real[:_BLOCK], real))) / 3.0, 1e-3)
        return log_density(points, synthetic, width) - log_density(points, real, width)


class SyntheticOrReal(MembershipAttack):
    """A classifier of synthetic against auxiliary records scores the candidates (as LOGAN's discriminator does).

    What it has learnt by heart as synthetic, copies above all, it takes for synthetic again.
    """

    name = "member-classifier"
    title = "Synthetic or real"

    def suspicion(self, release: Release, candidates: Dataset, knowledge: Knowledge) -> npt.NDArray[np.floating]:
        seed = derive_seed(knowledge.seed, self.name) % 2**32
        synthetic, real = (_some(_flat(x), seed) for x in (release.payload, knowledge.auxiliary.x))
        x, y = np.concatenate([synthetic, real]), np.repeat([1, 0], [len(synthetic), len(real)])
        return fit_memoriser(x, y, 2, seed)(_flat(candidates.x))[:, 1]


class StudentLoss(MembershipAttack):
    """How much better a student of the synthetic set knows the candidate's label than one of the auxiliary records.

    loss of the auxiliary student − loss of the synthetic set's student: the second takes out how hard the record is.
    """

    name = "member-loss"
    title = "Loss of a student"

    def obstacle(self, knowledge: Knowledge) -> str | None:
        unlabelled = knowledge.candidates is not None and not knowledge.candidates.utility
        return super().obstacle(knowledge) or ("needs labels" if unlabelled else None)

    def suspicion(self, release: Release, candidates: Dataset, knowledge: Knowledge) -> npt.NDArray[np.floating]:
        seed = derive_seed(knowledge.seed, self.name) % 2**32
        own, theirs = _classes(release.utility, candidates)
        auxiliary = knowledge.auxiliary
        real, _ = _classes(release.utility, auxiliary)
        classes = int(max(own.max(), theirs.max(), real.max())) + 1
        every = np.arange(len(own))
        losses = []
        for x, y in ((_flat(release.payload), theirs), (_flat(auxiliary.x), real)):
            rows = np.random.default_rng(seed).permutation(len(x))[:_MOST]
            student = fit_memoriser(x[rows], y[rows], classes, seed)
            losses.append(-student(_flat(candidates.x))[every, own])
        return np.asarray(losses[1] - losses[0])


def nearest_distance(points: FloatArray, among: FloatArray) -> FloatArray:
    """The Euclidean distance of each point to the nearest row, (N,)."""
    return _smallest(points, among, 0)


def log_density(points: FloatArray, among: FloatArray, width: float) -> npt.NDArray[np.float64]:
    """log of the mean of exp(−‖x − row‖²/2·width²) over the rows, for each point: (N,)."""
    from scipy.special import logsumexp

    found = np.empty(len(points))
    for start in range(0, len(points), _BLOCK):
        squared = _squared(points[start : start + _BLOCK], among)
        found[start : start + _BLOCK] = logsumexp(-squared / (2.0 * width**2), axis=1)
    return np.asarray(found - np.log(len(among)))


def _second_nearest(points: FloatArray, among: FloatArray) -> FloatArray:
    """The distance to the nearest row but one: of rows among themselves, to the nearest other one."""
    return _smallest(points, among, min(1, len(among) - 1))


def _smallest(points: FloatArray, among: FloatArray, place: int) -> FloatArray:
    found = np.empty(len(points), dtype=np.float32)
    for start in range(0, len(points), _BLOCK):
        squared = _squared(points[start : start + _BLOCK], among)
        found[start : start + _BLOCK] = np.sqrt(np.partition(squared, place, axis=1)[:, place])
    return found


def _squared(points: FloatArray, among: FloatArray) -> FloatArray:
    """‖x − row‖², (N, M); what lies within rounding of a copy counts as one."""
    sizes = (points**2).sum(axis=1)[:, None] + (among**2).sum(axis=1)[None, :]
    squared = sizes - 2.0 * points @ among.T
    return np.asarray(np.where(squared > 1e-6 * sizes, squared, 0.0), dtype=np.float32)


def _classes(released: Mapping[str, IntArray], data: Dataset) -> tuple[IntArray, IntArray]:
    """The joint class of the released labels: of ``data``, and of the release."""
    names = [name for name in released if name in data.utility]
    sizes = _sizes(data.schema, names)
    own, theirs = (tuple(labels[name] for name in names) for labels in (data.utility, released))
    return np.ravel_multi_index(own, sizes).astype(np.int64), np.ravel_multi_index(theirs, sizes).astype(np.int64)


def _sizes(schema: Schema, names: Sequence[str]) -> tuple[int, ...]:
    return tuple(len(schema.classes(name)) for name in names)


def _candidates(knowledge: Knowledge) -> Dataset:
    assert knowledge.candidates is not None  # obstacle() has seen to it
    return knowledge.candidates


def _some(rows: FloatArray, seed: int) -> FloatArray:
    """At most ``_MOST`` of the rows, in an order that says nothing."""
    return rows[np.random.default_rng(seed).permutation(len(rows))[:_MOST]]


def _flat(values: FloatArray) -> FloatArray:
    return np.ascontiguousarray(values.reshape(len(values), -1))
