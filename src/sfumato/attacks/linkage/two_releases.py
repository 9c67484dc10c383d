"""Linkage: two releases hold different records of the same people; who is who?

The attacker sees one release under pseudonyms and says for each record of the other under which pseudonym its person
stands there.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np

from sfumato.attacks.base import Attack, Guess, Measured
from sfumato.attacks.decoder_training import affordable
from sfumato.attacks.linear_alignment import fit_alignment, own_pairs
from sfumato.attacks.linkage.person_embedding import Embedding, fit_embedding, repeated
from sfumato.attacks.reconstruction.inverse_network import InverseNetwork
from sfumato.attacks.reidentification.candidates import nearest
from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.intervals import share_interval
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release

_PROBED = 64
"""Records whose payloads say what form payloads have."""
_RECORDS = 5000
"""Of the attacker's own, from which it learns what tells people apart."""


class LinkageAttack(Attack):
    """The guess is, for every released record, a pseudonym of ``knowledge.linked``: that of its nearest record."""

    threat = "linkage"

    def obstacle(self, knowledge: Knowledge) -> str | None:
        alone = (
            "needs two releases of one person: no subject among the victims has two records, and there is one release"
        )
        return super().obstacle(knowledge) or (alone if knowledge.linked is None else None)

    def guess(self, release: Release, knowledge: Knowledge) -> IntArray:
        assert knowledge.linked is not None  # obstacle() has seen to it
        here, there = self.embedding(knowledge), self.embedding(_there(knowledge))
        rows = nearest(here(release.payload), there(knowledge.linked.payload))
        return np.asarray(knowledge.linked.people[rows], dtype=np.int64)

    @abstractmethod
    def embedding(self, knowledge: Knowledge) -> Embedding:
        """Payloads (N, …) → where they are compared, (N, k)."""

    def trivial(self, knowledge: Knowledge, n: int) -> IntArray:
        """Without the release every person is as good: −1, scored as 1/people."""
        return np.full(n, -1, dtype=np.int64)

    def measure(self, guess: Guess, truth: Truth) -> list[Measured]:
        people = truth.positions()
        found = np.where(guess == -1, 1.0 / len(np.unique(people)), guess == people).astype(np.float64)
        interval = share_interval(found, truth.open().ids)
        return [Measured("rate", "lower", float(found.mean()), interval, (0.0, 1.0), primary=True, each=found)]


def _there(knowledge: Knowledge) -> Knowledge:
    """The same attacker before the pipeline of the other release."""
    assert knowledge.linked is not None
    return knowledge if knowledge.linked.query is None else replace(knowledge, query=knowledge.linked.query)


def _unlike(knowledge: Knowledge) -> str | None:
    """Why payloads of the two releases cannot be compared as they are, or None."""
    if knowledge.linked is None or knowledge.linked.query is None or knowledge.query is None:
        return None
    own = knowledge.query(knowledge.auxiliary.take(slice(0, _PROBED)))
    return None if own.shape[1:] == knowledge.linked.payload.shape[1:] else "needs two releases of one form"


class LinkByPayload(LinkageAttack):
    """Nearest payload, each number in units of its deviation among the attacker's own payloads."""

    name = "link-payload"

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return super().obstacle(knowledge) or _unlike(knowledge)

    def embedding(self, knowledge: Knowledge) -> Embedding:
        own = _flat(_own_payloads(knowledge)[0])
        deviation = np.where(own.std(axis=0) > 1e-6, own.std(axis=0), 1.0).astype(np.float32)
        return lambda payload: _flat(payload) / deviation


class LinkByDecoding(LinkageAttack):
    """Nearest rebuilt record."""

    name = "link-decode"

    inverse: InverseNetwork

    def embedding(self, knowledge: Knowledge) -> Embedding:
        return lambda payload: _flat(self.inverse.decode(payload, knowledge))


class LinkByAlignment(LinkageAttack):
    """Nearest payload, after the linear map that takes the attacker's own payloads of one release to those of the
    other: it needs no record to look at, and releases of two forms are one to it."""

    name = "link-align"

    def obstacle(self, knowledge: Knowledge) -> str | None:
        other = knowledge.linked is not None and knowledge.linked.query is not None
        return super().obstacle(knowledge) or (None if other else "needs a second release by another pipeline")

    def guess(self, release: Release, knowledge: Knowledge) -> IntArray:
        assert knowledge.linked is not None  # obstacle() has seen to it
        here, own = own_pairs(knowledge)
        query = _there(knowledge).query
        assert query is not None
        there = _flat(query(own))
        align = fit_alignment(here, there, derive_seed(knowledge.seed, self.name))
        expected, found = align(_flat(release.payload)), _flat(knowledge.linked.payload).astype(np.float64)
        rows = nearest(align.whitened(expected), align.whitened(found))
        return np.asarray(knowledge.linked.people[rows], dtype=np.int64)

    def embedding(self, knowledge: Knowledge) -> Embedding:
        return _flat


class LinkByMetric(LinkageAttack):
    """Nearest payload by a metric that the attacker learns from people of its own."""

    name = "link-metric"

    def obstacle(self, knowledge: Knowledge) -> str | None:
        own = repeated(knowledge.auxiliary.ids)
        alone = None if own else "needs people of the attacker's own with two records"
        return super().obstacle(knowledge) or alone or _unlike(knowledge)

    def embedding(self, knowledge: Knowledge) -> Embedding:
        payload, rows = _own_payloads(knowledge)
        return fit_embedding(payload, knowledge.auxiliary.ids[rows], derive_seed(knowledge.seed, self.name))


def _own_payloads(knowledge: Knowledge) -> tuple[FloatArray, slice]:
    """What the pipeline makes of the attacker's records, and which of them."""
    assert knowledge.query is not None and knowledge.linked is not None  # obstacle() has seen to it
    rows = slice(0, affordable(_RECORDS, knowledge.linked.payload[0].size))
    return knowledge.query(knowledge.auxiliary.take(rows)), rows


def _flat(values: FloatArray) -> FloatArray:
    return values.reshape(len(values), -1)
