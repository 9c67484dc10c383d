"""A table's columns cut into cells, by what is declared of them and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sfumato.core.column_rules import Among, ColumnRule, among
from sfumato.core.schema import Column, Schema

Doubles = npt.NDArray[np.float64]
FINE = 512
"""Cells between the ends of a numeric column, at most."""
_AMOUNT = 1000.0
"""A range from 0 to this or more is taken for an amount (money, weights) and cut by ratio, not by difference."""


@dataclass(frozen=True)
class Cells:
    """The cells of one column, and where it begins in an encoded record.

    A category is a cell. So is either end of a numeric range, which is often a value of its own (no gain, a top code),
    and each interval between the ``cuts`` from one end to the other. A missing value is the last cell.
    """

    column: Column
    start: int
    cuts: Doubles
    """The first value of each interval and of the upper end, in raw units; empty for categories."""

    @property
    def count(self) -> int:
        if self.column.kind == "categorical":
            return self.column.width
        return len(self.cuts) + 1 + int(self.column.nullable)

    @property
    def ordered(self) -> int:
        """How many cells, from the first, lie in the order of a number."""
        return len(self.cuts) + 1 if self.column.kind == "numeric" else 0

    def among(self, values: Among) -> npt.NDArray[np.bool_]:
        """Which cells hold these values; the cuts have to follow them (``cells_of``)."""
        column = self.column
        if column.kind == "categorical":
            return among(values, column.categories, np.arange(self.count))
        begins = np.concatenate([[column.low], self.cuts, np.full(self.count - self.ordered, np.nan)])
        return among(values, (), begins)

    def widths(self) -> Doubles:
        """How much of the range each cell holds: whole numbers, or a relative length; an end counts 1."""
        if self.column.kind == "categorical":
            return np.ones(self.count)
        inner = np.diff(self.cuts)
        if not self.column.integer:
            inner = inner / max(inner.max(initial=0.0), 1e-300)
        return np.concatenate([[1.0], inner, np.ones(self.count - 1 - len(inner))])

    def code(self, x: Tensor) -> Tensor:
        """The cell of each encoded record, (n, D) → (n,)."""
        column = self.column
        if column.kind == "categorical":
            return x[:, self.start : self.start + column.width].argmax(dim=1)
        raw = column.low + x[:, self.start].double() * (column.high - column.low)
        if column.integer:
            raw = raw.round()
        found = torch.searchsorted(torch.as_tensor(self.cuts), raw.contiguous(), right=True)
        if column.nullable:
            found = torch.where(x[:, self.start + 1] > 0.5, self.count - 1, found)
        return found

    def draw(self, codes: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """A raw value uniformly from each cell, (n,), and whether it is missing; a category is its code."""
        column = self.column
        if column.kind == "categorical":
            return codes.double(), torch.zeros(len(codes), dtype=torch.bool)
        missing = codes == self.count - 1 if column.nullable else torch.zeros(len(codes), dtype=torch.bool)
        cuts = torch.as_tensor(self.cuts)
        ends = torch.cat([torch.tensor([column.low], dtype=torch.float64), cuts])  # the first value of each cell
        size = torch.cat([torch.zeros(1, dtype=torch.float64), cuts.diff(), torch.zeros(1, dtype=torch.float64)])
        place = codes.clamp(max=self.ordered - 1)
        share = torch.rand(len(codes), dtype=torch.float64, generator=generator)
        inside = (share * size[place]).floor() if column.integer else share * size[place]
        return torch.where(missing, column.low, ends[place] + inside), missing

    def encode(self, raw: Tensor, missing: Tensor) -> Tensor:
        """Raw values as they stand in a record, (n,) → (n, width)."""
        column = self.column
        if column.kind == "categorical":
            return torch.nn.functional.one_hot(raw.long(), column.width).float()
        scaled = ((raw - column.low) / (column.high - column.low)).clamp(0.0, 1.0).float()
        return torch.stack([scaled, missing.float()], dim=1) if column.nullable else scaled.unsqueeze(1)


def cells_of(schema: Schema, fine: int = FINE) -> tuple[Cells, ...]:
    """The cells of every column, in order; at most ``fine`` between the ends of a number."""
    found, start = [], 0
    for column in schema.columns:
        cuts = np.zeros(0)
        if column.kind == "numeric":
            cuts = np.union1d(_cuts(column, fine), _named(schema.rules, column))
        found.append(Cells(column, start, cuts))
        start += column.width
    return tuple(found)


def _named(rules: Sequence[ColumnRule], column: Column) -> Doubles:
    """Where rules cut a number: each range begins a cell, and what follows it does."""
    ranges = [
        one
        for rule in rules
        for name, values in (*rule.when.items(), *rule.then.items())
        if name == column.name
        for one in values
        if not isinstance(one, str)
    ]
    if column.integer:
        cuts = [cut for low, high in ranges for cut in (np.ceil(low), np.floor(high) + 1.0)]
    else:
        cuts = [cut for low, high in ranges for cut in (low, np.nextafter(high, np.inf))]
    return np.array([cut for cut in cuts if column.low < cut <= column.high])


def _cuts(column: Column, fine: int) -> Doubles:
    low, high = column.low, column.high
    amount = low == 0.0 and high >= _AMOUNT
    if column.integer:
        inside = int(high - low) - 1
        if inside <= fine:
            return np.arange(low + 1.0, high + 1.0)
        inner = np.geomspace(1.0, high, fine + 1) if amount else np.linspace(low + 1.0, high, fine + 1)
        return np.unique(np.round(inner))
    first = np.nextafter(low, np.inf)
    inner = np.geomspace(1.0, high, fine) if amount else np.linspace(low, high, fine + 1)[1:]
    return np.concatenate([[first], inner])
