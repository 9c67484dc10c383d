"""Rows drawn from a mixture of products with less chance than independent draws: its counts, rounded."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch

from sfumato.mechanisms.synth.consistent_marginals import Codes, Doubles
from sfumato.mechanisms.synth.swapped_rows import swapped

_FEW = 8
"""A component with fewer rows draws them independently: rounding would leave only its most likely values."""
_SWAP_FROM, _SWAP_TO = 8, 50_000
"""Swaps need so many rows a component. Of more rows in all, pairs of columns are near enough without."""
_TRACE = 1e-2
"""A bin that is expected less often than this in a component is left out of it."""


def rounded_rows(weights: Doubles, chances: Doubles, starts: Codes, rows: int, generator: torch.Generator) -> Codes:
    """Bins (rows, columns) of so many rows, in random order.

    ``weights`` (C,), ``chances`` (C, S), ``starts`` (columns + 1,) where the bins of each column begin. A component
    gets its number of rows and every bin its number in a component, rounded; what that leaves is handed on to the
    next one (error diffusion), so that the counts of the whole are right. Columns are shuffled within a component, and
    swaps mend what that does to pairs of columns.
    """
    rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
    order = rng.permutation(np.flatnonzero(weights > 0.0))
    heights = np.cumsum(weights[order]) / weights[order].sum()
    ends = np.minimum(np.floor(heights * rows + rng.random()).astype(np.int64), rows)
    ends[-1] = rows
    sizes = np.diff(ends, prepend=0)
    bins = np.empty((rows, len(starts) - 1), dtype=np.int64)
    for column, (first, last) in enumerate(pairwise(starts)):
        left = np.zeros(last - first)
        for component, end, size in zip(order, ends, sizes, strict=True):
            if size == 0:
                continue
            due = size * chances[component, first:last] / chances[component, first:last].sum()
            counts = rng.multinomial(size, due / size) if size < _FEW else _rounded(due, left, int(size))
            left += due - counts
            values = np.repeat(np.arange(last - first), counts)
            rng.shuffle(values)
            bins[end - size : end, column] = values
    if _SWAP_FROM * len(order) <= rows <= _SWAP_TO:
        component = np.repeat(np.arange(len(order)), sizes)
        goal = rows * (chances.T * (weights / weights.sum())) @ chances
        bins = swapped(bins, component, starts, goal, rng)
    return bins[rng.permutation(rows)]


def _rounded(due: Doubles, left: Doubles, size: int) -> Codes:
    """Whole numbers that add up to ``size``, near ``due`` and what was ``left`` before."""
    able = due > _TRACE
    wanted = np.where(able, due + left, 0.0)
    counts = np.floor(np.maximum(wanted, 0.0)).astype(np.int64)
    lack = size - int(counts.sum())
    if lack > 0:
        rest = np.where(able, wanted - counts, -np.inf)
        if lack > int(able.sum()):
            counts += lack // int(able.sum()) * able
            lack = size - int(counts.sum())
        counts[np.argsort(-rest, kind="stable")[:lack]] += 1
    while lack < 0:
        spare = np.where(counts > 0, wanted - counts, np.inf)
        counts[int(spare.argmin())] -= 1
        lack += 1
    return counts
