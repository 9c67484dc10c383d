"""Which part of a record a party holds: all of it, or some columns of a table (§4.4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.core.dataset import FloatArray
from sfumato.core.errors import UsageError
from sfumato.core.schema import Column, Schema


@dataclass(frozen=True)
class Block:
    """Entries ``start`` to ``stop`` of the encoded record, or (``stop`` = 0) the whole record of ``shape``."""

    shape: tuple[int, ...]
    columns: tuple[Column, ...] = ()
    start: int = 0
    stop: int = 0

    def take(self, x: FloatArray) -> FloatArray:
        """This part of records (N, *shape)."""
        return x if self.stop == 0 else np.ascontiguousarray(x[:, self.start : self.stop])


class SideBySide(nn.Module):
    """One encoder a block, and their latents side by side: (B, D) → (B, K·h)."""

    def __init__(self, blocks: Sequence[Block], encoders: Sequence[nn.Module]) -> None:
        super().__init__()
        self.blocks, self.encoders = tuple(blocks), nn.ModuleList(encoders)

    def forward(self, x: Tensor) -> Tensor:
        held = zip(self.blocks, self.encoders, strict=True)
        return torch.cat([encoder(x[:, block.start : block.stop]) for block, encoder in held], dim=1)


def blocks_of(schema: Schema, parties: int) -> tuple[Block, ...]:
    """The columns of a table cut into ``parties`` runs with about as many entries each; a column stays whole."""
    if parties == 1:
        return (Block(schema.shape, schema.columns),)
    if schema.kind != "table":
        raise UsageError(f"ars: split=columns is for tables, these records are of kind {schema.kind}: use split=rows.")
    if len(schema.columns) < parties:
        raise UsageError(f"ars: {len(schema.columns)} columns are too few for {parties} parties.")
    ends = np.cumsum([column.width for column in schema.columns])
    blocks, first = [], 0
    for place in range(parties):
        left = parties - place - 1
        wanted = ends[-1] * (place + 1) / parties
        last = int(np.argmin(np.abs(ends - wanted))) + 1 if left else len(ends)
        last = min(max(last, first + 1), len(ends) - left)
        start, stop = int(ends[first - 1]) if first else 0, int(ends[last - 1])
        blocks.append(Block((stop - start,), schema.columns[first:last], start, stop))
        first = last
    return tuple(blocks)
