"""Cells of a table's columns joined into the bins in which a model of the table works, and the way back."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.mechanisms.synth.column_cells import Cells
from sfumato.mechanisms.synth.consistent_marginals import Codes, Doubles, pooled

BINS = 20
"""Bins of a numeric column, about, of equal noisy count."""
MOST_BINS = 64
"""Bins of any column, at most."""
_STANDS_OUT = 4.0
"""An end of a range that holds more than so many σ is a bin of its own."""
_SMOOTH = np.array([1.0, 1.0, 2.0, 1.0, 1.0]) / 6.0


class Bins(nn.Module):
    """For column j: ``bin_j`` (cells) is each cell's bin, ``share_j`` (cells) how likely a cell is in its bin.

    A column of no more cells than ``BINS`` keeps them. The shapes follow from the declared columns alone.
    """

    def __init__(self, cells: tuple[Cells, ...], kinds: tuple[Codes, ...]) -> None:
        """``kinds`` (cells,) are codes for each column: cells of different codes are never joined."""
        super().__init__()
        self.cells, self.kinds = cells, kinds
        self.most = tuple(
            min(one.count, MOST_BINS + int(np.count_nonzero(np.diff(kind))))
            for one, kind in zip(cells, kinds, strict=True)
        )
        for place, (one, most) in enumerate(zip(cells, self.most, strict=True)):
            self.register_buffer(f"bin_{place}", torch.arange(one.count).clamp(max=most - 1))
            self.register_buffer(f"share_{place}", torch.ones(one.count, dtype=torch.float64))

    def of(self, place: int) -> Codes:
        """The bin of each cell of a column."""
        return np.asarray(self.get_buffer(f"bin_{place}").numpy())

    def used(self, place: int) -> int:
        """How many bins a column has."""
        return int(self.of(place).max()) + 1

    def join(self, place: int, counts: Doubles, deviation: float) -> tuple[Doubles, Doubles]:
        """Join a column's cells by their noisy counts; return the counts of the bins and the deviations of those."""
        one = self.cells[place]
        bins = joined(one, counts, deviation, self.kinds[place])
        self.get_buffer(f"bin_{place}").copy_(torch.as_tensor(bins))
        self.get_buffer(f"share_{place}").copy_(torch.as_tensor(_shares(one, counts, deviation, bins)))
        return np.bincount(bins, counts).astype(np.float64), deviation * np.sqrt(np.bincount(bins))

    def code(self, place: int, x: Tensor) -> Tensor:
        """The bin of each encoded record, (n, D) → (n,)."""
        return self.get_buffer(f"bin_{place}")[self.cells[place].code(x)]

    def cell(self, place: int, bins: Tensor, generator: torch.Generator) -> Tensor:
        """A cell for each of these bins, spread over the rows of a bin as evenly as its shares allow: (n,) → (n,)."""
        of, share = self.get_buffer(f"bin_{place}"), self.get_buffer(f"share_{place}")
        if len(of) == int(of.max()) + 1:
            return bins
        order = torch.argsort(of, stable=True)
        heights = share[order].cumsum(dim=0)
        whole = torch.zeros(int(of.max()) + 1, dtype=torch.float64).index_add_(0, of, share).cumsum(dim=0)
        begin = torch.cat([torch.zeros(1, dtype=torch.float64), whole])
        mixed = torch.randperm(len(bins), generator=generator)
        rows = mixed[torch.argsort(bins[mixed], stable=True)]  # rows of a bin side by side, in random order
        counts = torch.bincount(bins, minlength=len(whole))
        rank = torch.arange(len(bins)) - (counts.cumsum(dim=0) - counts)[bins[rows]]
        start = torch.rand(len(bins), dtype=torch.float64, generator=generator)
        along = torch.empty(len(bins), dtype=torch.float64)
        along[rows] = (rank + start) / counts[bins[rows]]
        pick = begin[bins] + along * (begin[bins + 1] - begin[bins])
        return order[torch.searchsorted(heights, pick, right=True).clamp(max=len(order) - 1)]


def joined(cells: Cells, counts: Doubles, deviation: float, kinds: Codes) -> Codes:
    """The bin of each cell: numbers cut at quantiles of their noisy counts, rare categories pooled, kinds kept apart.

    An end of a number's range that stands out is a bin, as is what is missing. A value that holds more than a bin's
    part is one by itself: quantiles on both its sides are cut off at it.
    """
    if cells.count <= BINS:
        return np.arange(cells.count)
    if not cells.ordered:
        bins = pooled(counts, deviation, MOST_BINS)
        return np.asarray(np.unique(bins * (kinds.max() + 1) + kinds, return_inverse=True)[1])
    last = cells.ordered
    rising = np.cumsum(np.clip(counts[:last], 0.0, None))
    rising = rising / max(rising[-1], 1e-12)
    begins = {int(np.argmin(np.abs(rising - part))) + 1 for part in np.arange(1, BINS) / BINS}
    must = {int(cut) + 1 for cut in np.flatnonzero(np.diff(kinds[:last]))}
    begins = {begin for begin in begins if all(abs(begin - cut) > 1 for cut in must)} | must
    if last > 8:
        ends = ((counts[0], counts[1:4], 1), (counts[last - 1], counts[last - 4 : last - 1], last - 1))
        begins |= {cut for end, near, cut in ends if end > max(_STANDS_OUT * deviation, 2.0 * near.mean())}
    firsts = np.zeros(cells.count, dtype=np.int64)
    firsts[[begin for begin in begins if 0 < begin < last]] = 1
    firsts[last:] = 1
    return np.cumsum(firsts)


def _shares(cells: Cells, counts: Doubles, deviation: float, bins: Codes) -> Doubles:
    """How likely each cell is within its bin: by its noisy count, smoothed as far as that is noise."""
    shares = np.ones(cells.count)
    if cells.ordered:
        inner = smoothed(counts[: cells.ordered], deviation)
        floor = 1e-3 * max(float(inner.sum()), 0.0) / max(cells.ordered, 1) + 1e-9
        shares[: cells.ordered] = np.clip(inner, floor, None)
    else:
        shares = np.clip(counts, 1e-3 * max(float(counts.sum()), 0.0) / len(counts) + 1e-9, None)
    return shares / np.bincount(bins, shares)[bins]


def smoothed(counts: Doubles, deviation: float) -> Doubles:
    """Noisy counts drawn towards their means over five neighbours, by how much of what differs is noise.

    Empirical Bayes: with V the variance of counts about those means beyond the noise's σ², the weight of a count itself
    is V/(V + σ²). Ends are not smoothed.
    """
    if len(counts) < 7:
        return counts
    middle = counts[1:-1]
    means = np.convolve(np.pad(middle, 2, mode="edge"), _SMOOTH, "valid")
    rest = middle - means
    left = 1.0 - 2.0 * _SMOOTH[2] + float((_SMOOTH**2).sum())
    beyond = max(0.0, float((rest**2).mean()) / left - deviation**2)
    own = beyond / (beyond + deviation**2)
    return np.concatenate([counts[:1], own * middle + (1.0 - own) * means, counts[-1:]])
