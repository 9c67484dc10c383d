"""Tables as binary vectors and back: numeric columns fall into bins, categorical ones are one-hot already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

BINS = 12
_BEYOND = 2.0
"""An edge that no value in [0, 1] reaches: the bin above it stays empty."""


class ColumnLike(Protocol):
    """What is needed of a column: how it is coded and how many entries of the record it takes."""

    @property
    def kind(self) -> str: ...

    @property
    def width(self) -> int: ...

    @property
    def nullable(self) -> bool: ...


class BinaryColumns(nn.Module):
    """Records (B, D) → binary vectors (B, ``size``), every number replaced by the one-hot code of its bin.

    A value that holds more than 1/``BINS`` of the records (a capital gain of 0) has a bin of its own; the others
    share the rest in equal parts. Edges and each bin's mean are learnt by ``learn`` and stored with the weights.
    """

    def __init__(self, columns: Sequence[ColumnLike]) -> None:
        super().__init__()
        self.slices: list[tuple[str, int, int]] = []  # (numeric, choice or flag; from, to)
        at = 0
        for column in columns:
            if column.kind == "numeric":
                self.slices.append(("numeric", at, at + 1))
                if column.nullable:
                    self.slices.append(("flag", at + 1, at + 2))
            else:
                self.slices.append(("choice", at, at + column.width))
            at += column.width
        self.numeric = [start for kind, start, _ in self.slices if kind == "numeric"]
        self.size = sum(BINS if kind == "numeric" else stop - start for kind, start, stop in self.slices)
        self.register_buffer("edges", torch.full((len(self.numeric), BINS - 1), _BEYOND))
        self.register_buffer("centres", torch.zeros(len(self.numeric), BINS))
        self.edges: Tensor
        self.centres: Tensor

    def learn(self, x: npt.NDArray[np.float32]) -> None:
        """Edges and centres from the owner's records."""
        for place, column in enumerate(self.numeric):
            values = x[:, column]
            edges = _edges(values)
            self.edges[place, : len(edges)] = torch.as_tensor(edges)
            which = np.digitize(values, edges)
            for bin in np.unique(which):
                self.centres[place, bin] = float(values[which == bin].mean())

    def forward(self, x: Tensor) -> Tensor:
        parts, place = [], 0
        for kind, start, stop in self.slices:
            if kind == "numeric":
                which = torch.bucketize(x[:, start].contiguous(), self.edges[place].contiguous(), right=True)
                parts.append(nn.functional.one_hot(which, BINS).to(x.dtype))
                place += 1
            else:
                parts.append(x[:, start:stop])
        return torch.cat(parts, dim=1)

    def records(self, logits: Tensor) -> Tensor:
        """The likeliest record of logits (B, ``size``): a bin's mean, one category, a flag → (B, D)."""
        parts, at, place = [], 0, 0
        for kind, start, stop in self.slices:
            width = BINS if kind == "numeric" else stop - start
            scores = logits[:, at : at + width]
            if kind == "numeric":
                parts.append(self.centres[place][scores.argmax(1)][:, None])
                place += 1
            elif kind == "flag":
                parts.append((scores > 0).to(logits.dtype))
            else:
                parts.append(nn.functional.one_hot(scores.argmax(1), width).to(logits.dtype))
            at += width
        return torch.cat(parts, dim=1)


def _edges(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """At most ``BINS`` − 1 rising edges; value v is in the bin after every edge ≤ v."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= BINS:
        return np.asarray(distinct[1:], dtype=np.float32)
    heavy = distinct[np.argsort(counts)[::-1][: BINS // 2 - 1]]
    heavy = heavy[counts[np.searchsorted(distinct, heavy)] > len(values) / BINS]
    rest = values[~np.isin(values, heavy)]
    own = np.concatenate([heavy, np.nextafter(heavy, np.float32(_BEYOND))])  # each heavy value, and what follows it
    free = BINS - 1 - len(own)
    shared = np.quantile(rest, np.linspace(0, 1, free + 2)[1:-1]).astype(np.float32)
    edges = np.unique(np.concatenate([own, shared]))
    return np.asarray(edges[edges > distinct[0]], dtype=np.float32)
