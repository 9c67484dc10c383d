"""Mixtures of product distributions fitted to noisy tables of counts: no record and no budget is involved.

A mixture is p(x) = Σₖ πₖ Πⱼ θₖⱼ(xⱼ). All its two-way tables are A = Θᵀ diag(π) Θ, with Θ (K, S) the chances of every
bin of every column side by side, so one pass of Adam over all of them is three products of matrices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sfumato.mechanisms.synth.consistent_marginals import Averages, Doubles, Pair, nearest

Masks = npt.NDArray[np.bool_]
"""(boxes, S): which bins of every column a component in that box may use."""
_RATE, _LAST = 0.1, 0.1
"""Adam's first step, and the last in shares of it."""
_PULL = 100.0
"""Weight of the mutual information of each pair, Σ A log(A/oo), beside half the squared errors in units of σ²."""
_SPREAD = 0.5
"""Deviation of the first logits."""
_FLOOR = 2e-5
_NEVER = -40.0
"""Logit of a bin that a component may not use; its chance is 0."""
FEWEST = 2
"""Components of a box."""


@dataclass(frozen=True)
class Tables:
    """Noisy counts: ``ones`` a column (bins,) with a deviation for each bin, ``pairs`` (bins, bins) with one for all.

    ``sizes`` are the bins of each column. ``masks`` say what is possible (``structural_zeros``); None: everything.
    """

    sizes: tuple[int, ...]
    ones: tuple[tuple[Doubles, Doubles], ...]
    pairs: Mapping[Pair, tuple[Doubles, float]]
    masks: Masks | None = None

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """Where the bins of each column begin, and the end of the last: (columns + 1,)."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    def records(self) -> float:
        """About how many records there are, from all tables; at least 1."""
        total = Averages((1,))
        for table, deviation in self.pairs.values():
            total.add(np.array([table.sum()]), deviation * math.sqrt(table.size))
        for counts, each in self.ones:
            total.add(np.array([counts.sum()]), float(np.sqrt((each**2).sum())))
        return max(float(total.mean[0]), 1.0)

    def shares(self) -> Doubles:
        """How likely each bin of each column is, from all tables about it: (S,), each column adding up to 1."""
        count = self.records()
        sums = [values / each**2 for values, each in self.ones]
        weights = [1.0 / each**2 for _, each in self.ones]
        for (i, j), (table, deviation) in self.pairs.items():
            for place, axis in ((i, 1), (j, 0)):
                weight = 1.0 / (deviation**2 * table.shape[axis])
                sums[place] = sums[place] + weight * table.sum(axis=axis)
                weights[place] = weights[place] + weight
        found = [np.clip(nearest(a / b, count) / count, _FLOOR, None) for a, b in zip(sums, weights, strict=True)]
        return np.concatenate([one / one.sum() for one in found])

    def thinned(self, rng: np.random.Generator) -> tuple[Tables, dict[Pair, Doubles]]:
        """Two independent noisy versions of the pairs: t ± σ·g with g ~ N(0, 1), each of deviation √2·σ."""
        ours, theirs = {}, {}
        for pair, (table, deviation) in self.pairs.items():
            apart = rng.normal(size=table.shape) * deviation
            ours[pair] = table + apart, deviation * math.sqrt(2.0)
            theirs[pair] = table - apart
        return replace(self, pairs=ours), theirs


class Ensemble:
    """``members`` mixtures of ``components`` each, fitted alike from different beginnings."""

    def __init__(self, tables: Tables, components: int, members: int, seed: int, *, singles: bool = True) -> None:
        """``singles`` False leaves the one-way tables out of what is fitted."""
        self.tables = tables
        self.count = tables.records()
        starts = tables.starts
        width = int(starts[-1])
        shares = tables.shares()
        boxes = allotted(tables, shares, components)
        components = len(boxes)
        goal, weight = (np.zeros((width, width)) for _ in range(2))
        apart, of = np.ones((width, width)), np.zeros((width, len(tables.sizes)))
        parts = [slice(start, end) for start, end in pairwise(starts)]
        for place, part in enumerate(parts):
            apart[part, part] = 0.0
            of[part, place] = 1.0
        for (i, j), (table, deviation) in tables.pairs.items():
            goal[parts[i], parts[j]] = table / self.count
            goal[parts[j], parts[i]] = table.T / self.count
            weight[parts[i], parts[j]] = weight[parts[j], parts[i]] = (self.count / deviation) ** 2
        usable = boxes.astype(float)
        weight *= (usable.T @ usable) > 0.0  # what no box allows is zero whatever the noisy table says
        self._goal, self._weight, self._pull, self._of = (
            torch.tensor(one, dtype=torch.float32) for one in (goal, weight, _PULL * apart, of)
        )
        self._one = torch.tensor(np.concatenate([values for values, _ in tables.ones]) / self.count).float()
        each = np.concatenate([deviation for _, deviation in tables.ones])
        self._one_weight = torch.tensor((self.count / each) ** 2 * float(singles)).float()
        first = np.random.default_rng(seed).normal(size=(members, components, width))
        self._base = torch.tensor(np.where(boxes, np.log(shares), _NEVER), dtype=torch.float32)
        self._usable = torch.tensor(usable, dtype=torch.float32)
        self._logits = torch.tensor(_SPREAD * first, dtype=torch.float32)
        self._sizes = torch.zeros(members, components)

    def chances(self) -> Tensor:
        """Θ: (members, components, S), adding up to 1 over the bins of each column."""
        raw = torch.exp((self._logits + self._base).clamp_(-60.0, 30.0)) * self._usable
        return raw / ((raw @ self._of) @ self._of.T)

    def weights(self) -> Tensor:
        """π: (members, components)."""
        return torch.softmax(self._sizes, dim=1)

    @torch.no_grad()
    def fit(self, steps: int) -> Ensemble:
        """Adam on ½ Σ w (A − goal)² + pull · Σ A log(A/oo), the gradient in closed form."""
        inside = self._of.T.contiguous()
        slow, fast = 0.9, 0.99
        states = [[torch.zeros_like(one), torch.zeros_like(one)] for one in (self._logits, self._sizes)]
        for step in range(steps):
            chance, weight = self.chances(), self.weights()
            heavy = weight[:, :, None] * chance
            pairs = heavy.transpose(1, 2) @ chance  # (members, S, S)
            ones = heavy.sum(dim=1)
            logs = torch.log(ones + 1e-12)
            slope = self._weight * (pairs - self._goal)
            slope += self._pull * (torch.log(pairs + 1e-9) - logs[:, :, None] - logs[:, None, :])
            both = (chance @ slope) * chance
            alone = (self._one_weight * (ones - self._one))[:, None, :] * chance
            share = (0.5 * both + alone).sum(dim=2)
            each = weight[:, :, None] * (both + alone)
            slopes = (
                each - chance * ((each @ self._of) @ inside),
                weight * (share - (weight * share).sum(dim=1, keepdim=True)),
            )
            rate = _RATE * _LAST ** (step / steps) * math.sqrt(1.0 - fast ** (step + 1)) / (1.0 - slow ** (step + 1))
            for value, gradient, (mean, square) in zip((self._logits, self._sizes), slopes, states, strict=True):
                mean.mul_(slow).add_(gradient, alpha=1.0 - slow)
                square.mul_(fast).addcmul_(gradient, gradient, value=1.0 - fast)
                value.addcdiv_(mean, square.sqrt().add_(1e-8), value=-rate)
        return self

    def table(self, pair: Pair) -> Doubles:
        """The counts that the mean of the members expects for two columns: (bins, bins)."""
        chance, weight = self.chances().double(), self.weights().double()
        starts = self.tables.starts
        left, right = (chance[:, :, starts[place] : starts[place + 1]] for place in pair)
        found = torch.einsum("mk,mka,mkb->ab", weight, left, right) / len(weight)
        return np.asarray((self.count * found).numpy())

    def flat(self) -> tuple[Tensor, Tensor]:
        """All members as one mixture: weights (C,) and chances (C, S)."""
        chance, weight = self.chances(), self.weights()
        return (weight / len(weight)).reshape(-1), chance.reshape(-1, chance.shape[2])


def allotted(tables: Tables, shares: Doubles, components: int) -> Masks:
    """Which bins each component may use: a box gets components by the root of what it can hold, ``FEWEST`` at least.

    There are at most ``components`` + ``FEWEST`` · boxes of them.
    """
    width = int(tables.starts[-1])
    if tables.masks is None:
        return np.ones((components, width), dtype=np.bool_)
    starts = tables.starts
    holds = np.array([min(float((shares[a:b] * box[a:b]).sum()) for a, b in pairwise(starts)) for box in tables.masks])
    part = np.sqrt(holds) / np.sqrt(holds).sum()
    counts = np.maximum(FEWEST, np.floor(part * components)).astype(int)
    counts[int(part.argmax())] += max(0, components - int(counts.sum()))
    return np.repeat(tables.masks, counts, axis=0)


def enough(tables: Tables, among: Sequence[int], steps: int, seed: int, draws: int) -> int:
    """How many components suit the tables: fitted to one thinned half, judged on the other. It costs no budget.

    More are tried until two in a row do worse than the best.
    """
    rng = np.random.default_rng(seed)
    halves = [tables.thinned(rng) for _ in range(draws)]
    errors: list[float] = []
    for components in among:
        error = 0.0
        for ours, theirs in halves:
            found = Ensemble(ours, components, 1, seed, singles=False).fit(steps)
            for pair, table in theirs.items():
                error += float((((found.table(pair) - table) / ours.pairs[pair][1]) ** 2).sum())
        errors.append(error)
        if len(errors) > 2 and min(errors[-2:]) > min(errors):
            break
    return int(among[int(np.argmin(errors))])
