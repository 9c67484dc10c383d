"""``match-pixels``: which pixel is which, from how bright each is on average."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from sfumato.attacks.base import Attack, Guess, Measured
from sfumato.core.dataset import FloatArray
from sfumato.core.intervals import share_interval
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.release import Release
from sfumato.core.threats import Threat, register

ORDER = register(
    Threat(
        name="pixel-order",
        title="Pixel order",
        sentence="An adversary says where each released pixel came from; the share is how often that is right.",
        metric="places",
        better_for_owner="lower",
        baseline="picks a place at random",
        control="is told the order",
        verb="finds the places of",
        attack="order-finding",
        aim="the order of the pixels",
    )
)


class MatchPixels(Attack):
    """Pixels of the release and of the attacker's own records, matched by rank of mean, then of deviation.

    The guess is, for every released record, the place of each of its pixels, (N, size).
    """

    name = "match-pixels"
    threat = ORDER.name
    title = "Pixels matched by brightness"
    undefended: ClassVar[Mapping[str, float]] = {"places": 1.0}  # an order that is not secret is known

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return None if "order" in knowledge.unknown else "needs a release under a secret order"

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        size = knowledge.auxiliary.schema.size
        places = np.empty(size, dtype=np.float32)
        places[_ranked(release.payload)] = _ranked(knowledge.auxiliary.x)
        return np.tile(places, (len(release), 1))

    def trivial(self, knowledge: Knowledge, n: int) -> FloatArray:
        """Nothing known: −1, scored as one in as many places as there are."""
        return np.full((n, knowledge.auxiliary.schema.size), -1.0, dtype=np.float32)

    def measure(self, guess: Guess, truth: Truth) -> list[Measured]:
        right = np.where(guess == -1.0, 1.0 / guess.shape[1], guess == truth.secret("order")).mean(axis=1)
        interval = share_interval(right.astype(np.float64), truth.open().ids)
        return [Measured("places", "lower", float(right.mean()), interval, (0.0, 1.0), primary=True)]


def _ranked(records: FloatArray) -> np.ndarray:
    """The pixels of records (N, …) by mean brightness, then by deviation."""
    flat = records.reshape(len(records), -1).astype(np.float64)
    return np.lexsort((flat.std(axis=0), flat.mean(axis=0)))
