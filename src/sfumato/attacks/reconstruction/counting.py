"""Counting: equal payloads come from equal records, and frequencies tell from which."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.attacks.base import ReconstructionAttack
from sfumato.attacks.decoder_training import affordable
from sfumato.attacks.public_encoder import encoded
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Knowledge, Query
from sfumato.core.origin import by_frequency, hash_rows
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release

Doubles = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

_REPEAT = 0.1
"""A smaller share of repeated records in the attacker's own data gives nothing to count by."""
_SAME = 1e-4
"""Payloads that agree to this part of a standard deviation are equal: the rest is arithmetic."""
_MOST_APART = 0.5
"""Groups whose shares have a larger total variation from those of records are no records."""
_DIMENSIONS, _NEIGHBOURS = 16, 10
_QUERIES = 8
_MOST = 2000
"""So many groups and different records are told apart, the most frequent ones."""


@dataclass(frozen=True)
class Groups:
    """Payloads that come from one record each, by all that the attacker can tell.

    of     (N,), the number of each payload's group
    sizes  (C,)
    equal  whether the payloads of a group are equal; else noise of its own keeps each apart
    """

    of: Places
    sizes: Places
    equal: bool

    def means(self, flat: Doubles) -> Doubles:
        """The mean payload of each group, (C, D)."""
        sums = np.zeros((len(self.sizes), flat.shape[1]))
        np.add.at(sums, self.of, flat)
        return np.asarray(sums / self.sizes[:, None])

    def like(self, counts: Places) -> bool:
        """Whether groups are about as frequent as records that occur so often (most frequent first)."""
        ours, theirs = -np.sort(-self.sizes) / self.sizes.sum(), counts / counts.sum()
        wide = max(len(ours), len(theirs))
        apart = np.abs(np.pad(ours, (0, wide - len(ours))) - np.pad(theirs, (0, wide - len(theirs)))).sum() / 2
        return bool(apart <= _MOST_APART)


class _RecordNaming(ReconstructionAttack):
    """Names one of the attacker's own records for every payload."""

    def obstacle(self, knowledge: Knowledge) -> str | None:
        _, counts = by_frequency(knowledge.auxiliary.x)
        repeat = counts[counts > 1].sum() >= _REPEAT * counts.sum()
        hardly = None if repeat else "needs records that repeat: the attacker's own hardly do"
        return super().obstacle(knowledge) or hardly

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        first, counts = by_frequency(knowledge.auxiliary.x)
        flat = _flat(release.payload)
        different = knowledge.auxiliary.take(first)
        return np.asarray(different.x[self.named(flat, groups_of(flat, knowledge), counts, different, knowledge)])

    @abstractmethod
    def named(self, flat: Doubles, groups: Groups, counts: Places, different: Dataset, knowledge: Knowledge) -> Places:
        """The rank of each payload's record, (N,), among the ``different`` known ones, which occur ``counts`` times."""


class CountingAttack(_RecordNaming):
    """The k-th most frequent payload is the k-th most frequent record of the attacker's own data.

    That is the most likely assignment of groups of payloads c to records g: it maximises Σ_c n_c log p_g(c). Payloads
    are grouped if they are equal or, where noise keeps them apart, if they are as near as two payloads of one record
    are. Where the groups are not as frequent as records are, everybody is the most frequent record.
    """

    name = "counting"
    how = "the k-th most frequent payload is the k-th most frequent record"

    def named(self, flat: Doubles, groups: Groups, counts: Places, different: Dataset, knowledge: Knowledge) -> Places:
        named = np.zeros(len(groups.sizes), dtype=np.intp)
        if groups.like(counts):
            few = min(len(named), len(counts))
            named[np.argsort(-groups.sizes, kind="stable")[:few]] = np.arange(few)
        return named[groups.of]


class CodebookAttack(_RecordNaming):
    """Counts, and reads: of all assignments of groups c to records g the one with the largest

        Σ_c log N(√(n_c/N); √(a_g/A), ¼ (1/N + 1/A)) + log N(payload of c; answer for g, σ²),

    where a_g of the attacker's A records are g. What is answered for g, and with what noise σ, the attacker learns from
    the public encoder or from queries. Where groups are not as frequent as records, each payload is read for itself,
    and log p_g takes the place of the counts.
    """

    name = "codebook"
    how = "which record each payload stands for, by its frequency and by the pipeline's own answers"

    def named(self, flat: Doubles, groups: Groups, counts: Places, different: Dataset, knowledge: Knowledge) -> Places:
        from scipy.optimize import linear_sum_assignment

        some = different.take(slice(0, affordable(_MOST, _QUERIES * flat.shape[1])))
        answers, shares = QueriedAnswers.learnt(some, knowledge), counts[: len(some)] / counts.sum()
        if not groups.like(counts):
            return _best(lambda rows: answers.fit(flat[rows], np.ones(len(rows))) + np.log(shares), len(flat))
        means, own_noise = groups.means(flat), np.ones(len(groups.sizes)) if groups.equal else 1.0 / groups.sizes

        def fit(rows: Places) -> Doubles:
            apart = np.square(np.sqrt(groups.sizes[rows] / len(flat))[:, None] - np.sqrt(shares))  # (C, G)
            alike = answers.fit(means[rows], own_noise[rows])
            return np.asarray(alike - 2.0 * apart / (1 / len(flat) + 1 / counts.sum()))

        named = _best(fit, len(means))
        largest = np.argsort(-groups.sizes, kind="stable")[:_MOST]
        rows, columns = linear_sum_assignment(fit(largest), maximize=True)
        named[largest[rows]] = columns
        return named[groups.of]


@dataclass(frozen=True)
class QueriedAnswers:
    """What the pipeline answers for known records, ``means`` (G, D), and the variance of its noise, ``noise`` (D,).

    ``error`` is the variance of the means themselves, in units of ``noise``.
    """

    means: Doubles
    noise: Doubles
    error: float

    @classmethod
    def learnt(cls, own: Dataset, knowledge: Knowledge) -> QueriedAnswers:
        """By the public encoder where payloads have its shape, else by the mean of several queries."""
        query = knowledge.query
        assert query is not None  # obstacle() has seen to it
        times = _QUERIES if knowledge.randomised else 1
        asked = np.stack([_flat(query(own)) for _ in range(times)])  # (T, G, D)
        means, error = asked.mean(axis=0), 1.0 / times
        if knowledge.encoder is not None and knowledge.randomised:
            clean = _flat(encoded(knowledge, own))
            if clean.shape == means.shape:
                means, error = clean, 0.0
        noise = np.square(asked - means).sum(axis=(0, 1)) / max(1, (times - (error > 0)) * len(own))
        return cls(means, np.maximum(noise, 1e-6 * means.var(axis=0) + 1e-12), error if knowledge.randomised else 0.0)

    def fit(self, payloads: Doubles, own_noise: Doubles) -> Doubles:
        """log N(payload c; answer g, σ²) up to a constant, (C, G); ``own_noise`` (C,) is in units of ``noise``."""
        at, to = payloads / np.sqrt(self.noise), self.means / np.sqrt(self.noise)
        squares = np.square(at).sum(1)[:, None] - 2.0 * at @ to.T + np.square(to).sum(1)
        return np.asarray(-0.5 * squares / (own_noise[:, None] + self.error))


def _best(fit: Callable[[Places], Doubles], count: int) -> Places:
    """The column of the largest ``fit`` (n, G) for each of ``count`` rows, some at a time: (count,)."""
    parts = [np.arange(start, min(start + _MOST, count)) for start in range(0, count, _MOST)]
    return np.concatenate([fit(rows).argmax(axis=1) for rows in parts])


def groups_of(flat: Doubles, knowledge: Knowledge) -> Groups:
    """Payloads (N, D) that are equal or, where hardly any are, near."""
    scaled = (flat - flat.mean(axis=0)) / np.maximum(flat.std(axis=0), 1e-12)
    rounded = hash_rows(np.round(scaled / _SAME).astype(np.int64))
    _, of, sizes = np.unique(rounded, axis=0, return_inverse=True, return_counts=True)
    if sizes[sizes > 1].sum() >= _REPEAT * len(flat) or knowledge.query is None or len(flat) <= _NEIGHBOURS:
        return Groups(of.reshape(-1), sizes, equal=True)
    near = _near(flat, knowledge, knowledge.query)
    return Groups(near, np.bincount(near), equal=False)


def _near(flat: Doubles, knowledge: Knowledge, query: Query) -> Places:
    """Chains of neighbours no farther apart than two payloads of one record usually are."""
    from scipy.sparse.csgraph import connected_components
    from sklearn.decomposition import PCA
    from sklearn.neighbors import kneighbors_graph

    own = knowledge.auxiliary.sample(_MOST, derive_seed(knowledge.seed, "counting"))
    narrow = PCA(min(_DIMENSIONS, *flat.shape), random_state=0).fit(flat)
    one, two = (narrow.transform(_flat(query(own))) for _ in range(2))
    graph = kneighbors_graph(narrow.transform(flat), _NEIGHBOURS, mode="distance")
    graph.data[graph.data > np.median(np.linalg.norm(one - two, axis=1))] = 0.0
    graph.eliminate_zeros()
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.intp)


def _flat(payload: FloatArray) -> Doubles:
    return payload.reshape(len(payload), -1).astype(np.float64)
