"""Encoded records as the tables that peers read, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.schema import Schema
from sfumato.mechanisms.synth.column_cells import cells_of

BINS = 32
"""Intervals between the ends of a number, for models of categories; the same rule as `tree`'s own fine cells."""


def as_codes(data: Dataset, label: str) -> Any:
    """Every column as the number of its cell, and the label: a ``pyarrow.Table`` of whole numbers."""
    import pyarrow as pa

    x = torch.as_tensor(np.array(data.x))
    codes = {cells.column.name: cells.code(x).numpy() for cells in cells_of(data.schema, BINS)}
    return pa.table({**codes, label: data.utility[label]})


def from_codes(table: Any, schema: Schema, label: str, seed: int) -> tuple[FloatArray, IntArray]:
    """Records (n, D) and labels; a number is drawn uniformly from its cell."""
    generator = torch.Generator().manual_seed(seed)
    pieces = []
    for cells in cells_of(schema, BINS):
        codes = torch.as_tensor(_numbers(table, cells.column.name).astype(np.int64)).clamp(0, cells.count - 1)
        pieces.append(cells.encode(*cells.draw(codes, generator)))
    return torch.cat(pieces, dim=1).numpy(), _numbers(table, label).astype(np.int64)


def as_values(data: Dataset, label: str) -> Any:
    """The records in their owner's units, ``?`` for a missing category, and the label's class names."""
    import pyarrow as pa

    out: dict[str, Any] = {}
    start = 0
    for column in data.schema.columns:
        part = data.x[:, start : start + column.width].astype(np.float64)
        start += column.width
        if column.kind == "categorical":
            names = np.array([*column.categories, "?"], dtype=object)
            out[column.name] = names[part.argmax(axis=1)].tolist()
            continue
        numbers = column.low + part[:, 0] * (column.high - column.low)
        out[column.name] = np.rint(numbers).astype(np.int64) if column.integer else numbers
    classes = np.array(data.schema.classes(label), dtype=object)
    return pa.table({**out, label: classes[data.utility[label]].tolist()})


def from_values(table: Any, schema: Schema, label: str) -> tuple[FloatArray, IntArray]:
    """Records (n, D) and labels; numbers outside the declared range count as its nearest end."""
    pieces = []
    for cells in cells_of(schema):
        column = cells.column
        if column.kind == "categorical":
            raw = torch.tensor([_place(value, column.categories) for value in table.column(column.name).to_pylist()])
        else:
            raw = torch.as_tensor(np.clip(_numbers(table, column.name), column.low, column.high))
            raw = raw.round() if column.integer else raw
        pieces.append(cells.encode(raw, torch.zeros(len(raw), dtype=torch.bool)))
    classes = schema.classes(label)
    y = np.array([classes.index(str(value)) for value in table.column(label).to_pylist()], dtype=np.int64)
    return torch.cat(pieces, dim=1).numpy(), y


def _place(value: Any, names: tuple[str, ...]) -> int:
    return names.index(str(value)) if str(value) in names else len(names)


def _numbers(table: Any, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([float(value) for value in table.column(name).to_pylist()])
