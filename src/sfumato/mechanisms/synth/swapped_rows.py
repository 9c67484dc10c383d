"""Swaps between rows of one component that bring the two-way counts of drawn rows nearer to what the model expects."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from sfumato.mechanisms.synth.consistent_marginals import Codes, Doubles

SWEEPS = 4
_TOGETHER = 256
"""Swaps that are tried at once, or so many times less than there are rows if that is more."""
_PARTS = 100


def swapped(bins: Codes, component: Codes, starts: Codes, goal: Doubles, rng: np.random.Generator) -> Codes:
    """Rows (n, columns) with values of a column swapped between rows of the same ``component`` (n,).

    ``goal`` (S, S) holds the expected counts of every pair of bins. A swap changes no count of a single column, and
    none of a component; it is kept if Σ (count − goal)² falls. Swaps tried together do not see each other.
    """
    rows, columns = bins.shape
    flat = bins + starts[:-1]
    beyond = _counts(flat, starts) - goal
    size = max(_TOGETHER, rows // _PARTS)
    for _ in range(SWEEPS):
        for column in rng.permutation(columns):
            mixed = np.argsort(component + rng.random(rows))
            first, second = mixed[: rows // 2 * 2 : 2], mixed[1::2]
            able = (component[first] == component[second]) & (flat[first, column] != flat[second, column])
            order = rng.permutation(np.flatnonzero(able))
            for begin in range(0, len(order), size):
                chosen = order[begin : begin + size]
                _swap(flat, beyond, column, first[chosen], second[chosen])
    return flat - starts[:-1]


def _swap(flat: Codes, beyond: Doubles, column: int, first: Codes, second: Codes) -> None:
    """Swap a column between those of the pairs of rows where that helps; ``flat`` and ``beyond`` are changed."""
    ours, theirs = flat[first], flat[second]
    a, b = ours[:, column, None], theirs[:, column, None]
    moved = ours != theirs
    moved[:, column] = False
    change = 4.0 - 2.0 * (beyond[a, ours] - beyond[b, ours] + beyond[b, theirs] - beyond[a, theirs])
    better = (change * moved).sum(axis=1) < 0.0
    if not better.any():
        return
    ours, theirs, moved, a, b = (one[better] for one in (ours, theirs, moved, a, b))
    from_a, from_b = (np.broadcast_to(one, ours.shape)[moved] for one in (a, b))
    left, right = ours[moved], theirs[moved]
    for row, other, step in ((from_a, left, -1.0), (from_b, left, 1.0), (from_b, right, -1.0), (from_a, right, 1.0)):
        np.add.at(beyond, (row, other), step)
        np.add.at(beyond, (other, row), step)
    flat[first[better], column], flat[second[better], column] = b[:, 0], a[:, 0]


def _counts(flat: Codes, starts: Codes) -> Doubles:
    width = int(starts[-1])
    counts = np.zeros((width, width))
    for i, j in combinations(range(flat.shape[1]), 2):
        wide = int(starts[j + 1] - starts[j])
        code = (flat[:, i] - starts[i]) * wide + flat[:, j] - starts[j]
        found = np.bincount(code, minlength=int(starts[i + 1] - starts[i]) * wide).reshape(-1, wide)
        counts[starts[i] : starts[i + 1], starts[j] : starts[j + 1]] = found
    return counts + counts.T
