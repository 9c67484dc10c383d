"""Linkage: two releases hold different records of the same people; who is who?

The attacker sees one release under pseudonyms and says for each record of the other under which pseudonym its person
stands there.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from sfumato.attacks.base import Attack, Guess, Measured
from sfumato.attacks.decoder_training import affordable
from sfumato.attacks.linkage.person_embedding import Embedding, fit_embedding, repeated
from sfumato.attacks.reconstruction.inverse_network import InverseNetwork
from sfumato.attacks.reidentification.candidates import nearest
from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.intervals import share_interval
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release

_RECORDS = 5000
"""Of the attacker's own, from which it learns what tells people apart."""


class LinkageAttack(Attack):
    """The guess is, for every released record, a pseudonym of ``knowledge.linked``: that of its nearest record."""

    threat = "linkage"

    def obstacle(self, knowledge: Knowledge) -> str | None:
        alone = "needs two releases of one person: no subject among the victims has two records"
        return super().obstacle(knowledge) or (alone if knowledge.linked is None else None)

    def guess(self, release: Release, knowledge: Knowledge) -> IntArray:
        assert knowledge.linked is not None  # obstacle() has seen to it
        embed = self.embedding(knowledge)
        rows = nearest(embed(release.payload), embed(knowledge.linked.payload))
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
        return [Measured("rate", "lower", float(found.mean()), interval, (0.0, 1.0), primary=True)]


class LinkByPayload(LinkageAttack):
    """Nearest payload, each number in units of its deviation among the attacker's own payloads."""

    name = "link-payload"

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


class LinkByMetric(LinkageAttack):
    """Nearest payload by a metric that the attacker learns from people of its own."""

    name = "link-metric"

    def obstacle(self, knowledge: Knowledge) -> str | None:
        own = repeated(knowledge.auxiliary.ids)
        return super().obstacle(knowledge) or (None if own else "needs people of the attacker's own with two records")

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
