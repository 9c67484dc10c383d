"""From noisy tables of counts to tables that are counts of something: no negative ones, and all in agreement."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Pair = tuple[int, int]
_ROUNDS = 20
_TRACE = 1e-9
_FLOOR = 3.0
"""Expected counts are taken for at least this many σ where they divide: rare cells say nothing."""


def nearest(values: Doubles, total: float) -> Doubles:
    """The point of {p ≥ 0, Σ p = total} that is nearest to ``values`` (any shape) in L2."""
    flat = values.ravel()
    falling = np.sort(flat)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(flat) + 1)
    shift = excess[np.flatnonzero(falling > excess)[-1]]
    return np.asarray(np.maximum(flat - shift, 0.0).reshape(values.shape))


def fitted(table: Doubles, rows: Doubles, columns: Doubles) -> Doubles:
    """The table scaled until its margins are those given (iterative proportional fitting)."""
    table = table + _TRACE * max(table.sum(), 1.0)
    for _ in range(_ROUNDS):
        table = table * (rows / np.maximum(table.sum(axis=1), 1e-12))[:, None]
        table = table * (columns / np.maximum(table.sum(axis=0), 1e-12))[None, :]
    return table


class Averages:
    """The mean of several noisy measurements of one thing, each weighted by 1/σ²."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.total, self.weight = np.zeros(shape), 0.0

    def add(self, values: Doubles, deviation: float) -> None:
        self.total += values / deviation**2
        self.weight += 1.0 / deviation**2

    @property
    def mean(self) -> Doubles:
        return self.total / self.weight

    @property
    def deviation(self) -> float:
        return 1.0 / math.sqrt(self.weight)


def dependence(table: Doubles, expected: Doubles, deviation: float) -> tuple[float, float]:
    """How far a noisy table is from the ``expected`` one of independent columns, and the variance of that by noise.

    An estimate of half of χ² = Σ (t − e)²/e, near the mutual information in counts, without the noise's own part:
    ½ Σ ((t − e)² − σ²)/(e + 3σ). Without dependence its mean is 0 and its variance ½ Σ σ⁴/(e + 3σ)².
    """
    under = np.maximum(expected, 0.0) + _FLOOR * deviation
    value = 0.5 * (((table - expected) ** 2 - deviation**2) / under).sum()
    return float(value), float(0.5 * deviation**4 * (under**-2.0).sum())


def spanning_tree(scores: Mapping[Pair, float], columns: int) -> list[tuple[int, int]]:
    """The heaviest tree over all columns, (column, parent) in an order in which parents come first; the root has −1.

    An edge without a positive score is not used: its column stands alone, with parent −1.
    """
    order = [(0, -1)]
    inside = {0}
    while len(inside) < columns:
        best, child, parent = max(
            (scores[min(i, j), max(i, j)], j, i) for i in inside for j in range(columns) if j not in inside
        )
        order.append((child, parent if best > 0.0 else -1))
        inside.add(child)
    return order


def merged(counts: Doubles, deviation: float, bins: int, most: int) -> Codes:
    """Neighbouring cells joined into about ``bins`` bins of equal noisy count, at most ``most``: the bin of each cell.

    A bin holds more than the noise can make up; a cell that stands out by itself is a bin of its own.
    """
    goal = max(float(counts.sum()) / bins, 4.0 * deviation)
    while True:
        found = _joined(counts, goal, max(0.7 * goal, 3.5 * deviation))
        if found.max(initial=0) < most:
            return found
        goal *= 1.2


def _joined(counts: Doubles, goal: float, alone: float) -> Codes:
    found = np.zeros(len(counts), dtype=np.int64)
    bin, held, begun = 0, 0.0, False
    for place, count in enumerate(counts):
        if count > alone and begun:
            bin, held = bin + 1, 0.0
        found[place] = bin
        held, begun = held + count, True
        if held >= goal or count > alone:
            bin, held, begun = bin + 1, 0.0, False
    return found


def pooled(counts: Doubles, deviation: float, most: int) -> Codes:
    """The bin of each category: one each for those that noise cannot make up, one for all others; at most ``most``."""
    order = np.argsort(-counts)
    clear = [int(place) for place in order[: most - 1] if counts[place] > 2.0 * deviation]
    found = np.full(len(counts), len(clear), dtype=np.int64)
    for bin, place in enumerate(sorted(clear)):
        found[place] = bin
    return found


def shares_within(counts: Doubles, bins: Codes, widths: Doubles) -> Doubles:
    """How likely each cell is, given its bin: by its noisy count where bins hold something, by its width elsewhere."""
    shares = np.zeros(len(counts))
    for bin in np.unique(bins):
        inside = bins == bin
        total = float(counts[inside].sum())
        likely = nearest(counts[inside], total) if total > 0.0 else widths[inside]
        shares[inside] = likely / likely.sum()
    return shares
