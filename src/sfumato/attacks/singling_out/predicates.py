"""Singling out: predicates, read from the release, that are true of exactly one person in the owner's records.

The same predicates are put to as many held-out people; what isolates one of them just as often is luck. Predicates
are put to members and strangers in equal numbers, since it is easier to be the only one among few. The interval comes
from exchanging members and strangers at random: many predicates may be about the same person, so they are not counted
as independent. A predicate that was asked for and not found counts as none: ``n`` is how many there were.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from sfumato.attacks.base import Guess, Measured
from sfumato.attacks.held_out import EXCESS, HELD_OUT, RATE, HeldOutAttack, candidates_of, places
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.errors import RuleBroken
from sfumato.core.intervals import wilson
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.metrics import Values
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release

ANYTHING = (-1.0, 1e9)
"""The limits of a column of which a predicate says nothing."""
_NEVER = (1.0, 0.0)
_EXCHANGES = 400
_ENOUGH = 10
"""A way of singling out ranks if it found at least one in so many of the predicates asked for."""
_WINDOW = 0.02
"""Half the width, in ranks, of what a predicate of several columns says of a number."""
_MOST_SEEN = 5_000
"""Released rows that a predicate is tried on."""

Predicates = npt.NDArray[np.float32]


class SinglingOut(HeldOutAttack):
    """The guess is ``asked`` predicates: for each column the lowest and the highest value, (asked, columns, 2)."""

    threat = "singling-out"
    with_auxiliary = False
    asked: int = 1000

    def expected(self, release: Release, knowledge: Knowledge) -> int:
        return self.asked

    def guess(self, release: Release, knowledge: Knowledge) -> Predicates:
        rng = np.random.default_rng(derive_seed(knowledge.seed, self.name))
        found = self.predicates(release.payload, knowledge, rng)[: self.asked]
        width = candidates_of(knowledge).x.shape[1]
        missing = np.broadcast_to(np.array(_NEVER, dtype=np.float32), (self.asked - len(found), width, 2))
        made = np.array(found, dtype=np.float32).reshape(len(found), width, 2)
        return np.concatenate([made, missing])

    @abstractmethod
    def predicates(self, released: FloatArray, knowledge: Knowledge, rng: np.random.Generator) -> list[Predicates]:
        """At most so many predicates, each true of one released row."""

    def trivial(self, knowledge: Knowledge, n: int) -> Predicates:
        """None."""
        width = candidates_of(knowledge).x.shape[1]
        return np.broadcast_to(np.array(_NEVER, dtype=np.float32), (n, width, 2))

    def came_true(self, guess: Guess, truth: Dataset) -> Values:
        raise RuleBroken(f"{self.name}: predicates are about nobody in particular.")

    def of_each(self, guess: Guess, truth: Truth) -> dict[str | None, Values]:
        return {}

    def measure(self, guess: Guess, truth: Truth) -> list[Measured]:
        found = guess[guess[:, 0, 0] <= guess[:, 0, 1]]
        enough = len(found) * _ENOUGH >= len(guess)
        note = f"{len(found)} of {len(guess)} predicates found{'' if enough else ', too few to rank'}"
        if not len(found):
            wide = Measured(EXCESS, "lower", 0.0, (-1.0, 1.0), (-1.0, 1.0), note=note, n=0)
            return [wide, *(Measured(name, "lower", 0.0, (0.0, 1.0), (0.0, 1.0), n=0) for name in (RATE, HELD_OUT))]
        members = truth.members() == 1
        inside, outside = np.flatnonzero(members), np.flatnonzero(~members)
        few = min(len(inside), len(outside))
        rng = np.random.default_rng(few)
        both = np.concatenate([rng.permutation(inside)[:few], rng.permutation(outside)[:few]])
        true_of = holds(found, truth.open().x[both])
        first = np.arange(len(both)) < few
        isolated = [alone(true_of[:, side]) for side in (first, ~first)]
        value = float(isolated[0].mean() - isolated[1].mean())
        half = self._by_chance(true_of, first, rng)
        interval = (max(-1.0, value - half), min(1.0, value + half))
        rates = [
            Measured(name, "lower", float(one.mean()), wilson(float(one.sum()), len(one)), (0.0, 1.0), n=len(found))
            for name, one in zip((RATE, HELD_OUT), isolated, strict=True)
        ]
        best = Measured(EXCESS, "lower", value, interval, (-1.0, 1.0), primary=enough, note=note, n=len(found))
        return [best, *rates]

    def _by_chance(
        self, true_of: npt.NDArray[np.bool_], first: npt.NDArray[np.bool_], rng: np.random.Generator
    ) -> float:
        """How far apart the two sides are by chance: the quantile over random exchanges, plus one query."""
        sides = np.stack([rng.permutation(first) for _ in range(_EXCHANGES)], axis=1).astype(np.float32)
        weights = true_of.astype(np.float32)
        here = weights @ sides
        there = weights.sum(axis=1, keepdims=True) - here
        apart = np.abs((here == 1).mean(axis=0) - (there == 1).mean(axis=0))
        return float(np.quantile(apart, self.confidence)) + 1.0 / len(true_of)


class OneColumn(SinglingOut):
    """Values that one released row alone has, the smallest and the largest ones; each column supplies its share."""

    name = "single-one-column"
    title = "One column"
    how = "values that only one released row has, an equal share from each column"

    def predicates(self, released: FloatArray, knowledge: Knowledge, rng: np.random.Generator) -> list[Predicates]:
        kept = places(knowledge.columns)
        share = max(1, self.asked // len(kept))
        found = []
        for place in kept:
            limits = _of_number(released[:, place]) if knowledge.columns[place].number else _of_code(released[:, place])
            for at in np.sort(rng.permutation(len(limits))[:share]):
                found.append(_predicate(released.shape[1], {place: limits[at]}))
        return [found[at] for at in rng.permutation(len(found))]


class SeveralColumns(SinglingOut):
    """A released row described by as many of its columns as it takes until no other released row fits."""

    name = "single-several-columns"
    title = "Several columns"
    how = "as many columns of a released row as it takes until no other one fits"

    def predicates(self, released: FloatArray, knowledge: Knowledge, rng: np.random.Generator) -> list[Predicates]:
        kept = places(knowledge.columns)
        seen = released[np.sort(rng.permutation(len(released))[:_MOST_SEEN])]
        found = []
        for at in _turns(len(seen), self.asked, rng):
            fits = np.ones(len(seen), dtype=bool)
            said: dict[int, tuple[float, float]] = {}
            for place in rng.permutation(kept):
                value, number = float(seen[at, place]), knowledge.columns[place].number
                limits = (value - _WINDOW, value + _WINDOW) if number else (value, value)
                said[int(place)] = limits
                fits &= (seen[:, place] >= limits[0]) & (seen[:, place] <= limits[1])
                if fits.sum() == 1:
                    found.append(_predicate(released.shape[1], said))
                    break
        return found


class WholeRow(SinglingOut):
    """A released row described by all of its columns, numbers within a window, unless another released row fits."""

    name = "single-whole-row"
    title = "All columns"
    how = "every column of a released row"

    def predicates(self, released: FloatArray, knowledge: Knowledge, rng: np.random.Generator) -> list[Predicates]:
        kept = places(knowledge.columns)
        found = []
        for at in np.sort(rng.permutation(len(released))[: self.asked]):
            row = released[at]
            said = {
                place: (row[place] - _WINDOW, row[place] + _WINDOW)
                if knowledge.columns[place].number
                else (row[place], row[place])
                for place in kept
            }
            found.append(_predicate(released.shape[1], said))
        return found


def holds(predicates: Predicates, rows: FloatArray) -> npt.NDArray[np.bool_]:
    """Which predicates are true of which rows, (predicates, rows)."""
    found = np.ones((len(predicates), len(rows)), dtype=bool)
    for place in range(rows.shape[1]):
        low, high = predicates[:, place, 0], predicates[:, place, 1]
        asked = np.flatnonzero((low != np.float32(ANYTHING[0])) | (high != np.float32(ANYTHING[1])))
        values = rows[:, place][None, :]
        found[asked] &= (values >= low[asked, None]) & (values <= high[asked, None])
    return found


def alone(true_of: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which predicates are true of exactly one row."""
    return np.asarray(true_of.sum(axis=1) == 1)


def _predicate(width: int, said: dict[int, tuple[float, float]]) -> Predicates:
    made = np.tile(np.array(ANYTHING, dtype=np.float32), (width, 1))
    for place, limits in said.items():
        made[place] = limits
    return made


def _of_code(values: FloatArray) -> list[tuple[float, float]]:
    found, counts = np.unique(values, return_counts=True)
    return [(float(code), float(code)) for code in found[counts == 1]]


def _of_number(values: FloatArray) -> list[tuple[float, float]]:
    """Values of one row alone up to halfway to their neighbours, and all beyond the second smallest and largest."""
    found, counts = np.unique(values, return_counts=True)
    if len(found) < 2:
        return []
    middle = (found[1:] + found[:-1]) / 2.0
    ends = np.concatenate([[-0.5], middle, [1.5]])
    return [(float(ends[at]), float(ends[at + 1])) for at in np.flatnonzero(counts == 1)]


def _turns(count: int, asked: int, rng: np.random.Generator) -> Iterator[int]:
    """Rows in turn, each as often as it takes to ask so many times."""
    for _ in range(-(-asked // count)):
        yield from rng.permutation(count).tolist()
