"""Other releases by the maker of this one, for attacks that compare: of random halves of the people.

Everybody of a file is in a shadow release with all records or with none. Half of the candidates are chosen by the
attack; of the other people, whom it is not asked about, a random half is added, so that a shadow release is about as
large as the audited one and nobody is told who its people were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.attacks.coded_rows import in_order
from sfumato.core.dataset import FloatArray, IntArray, Splits
from sfumato.core.knowledge import Remake
from sfumato.core.randomness import derive_seed

Rows = npt.NDArray[np.intp]
Make = Callable[[IntArray, int], FloatArray]
"""Places among the owner's, the victims' and the attacker's records, one after the other, and a number → coded rows of
a release made of these records."""


@dataclass(frozen=True)
class Pool:
    """Everybody whose records a shadow release may be made of: the owner's people and the held-out ones."""

    splits: Splits
    seed: int

    @property
    def ids(self) -> npt.NDArray[np.str_]:
        parts = (self.splits.owner, self.splits.victim, self.splits.attacker)
        return np.concatenate([np.asarray(part.ids).astype(np.str_) for part in parts])

    def remake(self, candidates: npt.NDArray[np.str_], make: Make) -> Remake:
        """What the attacker may ask: a release of some of the candidates, who are known here by their ids."""
        _, person = np.unique(np.concatenate([candidates, self.ids]), return_inverse=True)
        suspects, owners = person[: len(candidates)], person[len(candidates) :]
        others = np.setdiff1d(owners, suspects)
        size = min(len(np.unique(owners[: len(self.splits.owner)])), len(np.unique(owners)) // 2)

        def remake(chosen: IntArray, number: int) -> FloatArray:
            rng = np.random.default_rng(derive_seed(self.seed, f"shadow release {number}"))
            few = min(len(others), max(0, size - len(chosen)))
            inside = np.concatenate([suspects[chosen], rng.permutation(others)[:few]])
            return in_order(make(np.flatnonzero(np.isin(owners, inside)), number))

        return remake

    def records(self) -> FloatArray:
        """All coded records, in the order of ``Make``."""
        return np.concatenate([self.splits.owner.x, self.splits.victim.x, self.splits.attacker.x])
