"""Linkability: one party knows some columns of a person, another one the others; does the release join them?

The columns are cut into two halves several times. Both sides look for the released rows nearest to what they know. Two
people of the population may be joined as well, by what goes with what in general, so the rate for held-out people is
subtracted.
"""

from __future__ import annotations

import numpy as np

from sfumato.attacks.base import Guess
from sfumato.attacks.coded_rows import nearest
from sfumato.attacks.held_out import HeldOutAttack, candidates_of, places
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.metrics import Values
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release

_CUTS = 3
_LINE_UP = 20


class LinkAttack(HeldOutAttack):
    """The guess is, for each candidate and cut, 1 where its two halves were joined."""

    threat = "linkability"
    with_auxiliary = False

    def obstacle(self, knowledge: Knowledge) -> str | None:
        few = len(places(knowledge.columns)) < 2
        return super().obstacle(knowledge) or ("needs two columns" if few else None)

    def came_true(self, guess: Guess, truth: Dataset) -> Values:
        return np.asarray(guess.reshape(len(guess), -1).mean(axis=1), dtype=np.float64)


class SameNeighbour(LinkAttack):
    """Both sides meet in a row: it is among the ``k`` nearest to either half."""

    k: int = 1

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"link-meet-{self.k}"

    @property
    def title(self) -> str:  # type: ignore[override]
        return "Nearest of both" if self.k == 1 else f"Among the {self.k} nearest of both"

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        points = candidates_of(knowledge).x
        joined = []
        for halves in cuts(knowledge):
            one, other = (nearest(points, release.payload, knowledge.columns, self.k, half)[0] for half in halves)
            joined.append((one[:, :, None] == other[:, None, :]).any(axis=(1, 2)))
        return np.stack(joined, axis=1).astype(np.float32)


class LineUp(LinkAttack):
    """The one side's nearest row is asked which of 20 people's other halves it looks like: is it the person's own?"""

    name = "link-line-up"
    title = "Own half among twenty"
    how = "the nearest row of one half picks the other half among twenty people's"

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        points = candidates_of(knowledge).x
        rng = np.random.default_rng(derive_seed(knowledge.seed, self.name))
        others = rng.integers(1, len(points), (len(points), _LINE_UP - 1))
        people = np.concatenate([np.zeros((len(points), 1), int), others], axis=1)
        people = (people + np.arange(len(points))[:, None]) % len(points)
        joined = []
        for one, other in cuts(knowledge):
            row = release.payload[nearest(points, release.payload, knowledge.columns, 1, one)[0][:, 0]]
            apart = np.zeros(people.shape)
            for place in other:
                found = points[people, place]
                number = knowledge.columns[place].number
                apart += np.abs(found - row[:, place, None]) if number else found != row[:, place, None]
            nearer = (apart < apart[:, :1]).sum(axis=1)
            ties = (apart == apart[:, :1]).sum(axis=1)
            joined.append(np.where(nearer == 0, 1.0 / ties, 0.0))
        return np.stack(joined, axis=1).astype(np.float32)

    def trivial(self, knowledge: Knowledge, n: int) -> FloatArray:
        return np.full(n, 1.0 / _LINE_UP, dtype=np.float32)


def cuts(knowledge: Knowledge) -> list[tuple[list[int], list[int]]]:
    """Several ways to cut the columns into two halves."""
    rng = np.random.default_rng(derive_seed(knowledge.seed, "two halves"))
    found = []
    for _ in range(_CUTS):
        order = rng.permutation(places(knowledge.columns)).tolist()
        found.append((sorted(order[: len(order) // 2]), sorted(order[len(order) // 2 :])))
    return found
