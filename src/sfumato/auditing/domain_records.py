"""Records that the declared domain allows, whatever the owner holds: the lightest, the heaviest, random ones."""

from __future__ import annotations

import numpy as np

from sfumato.core.dataset import FloatArray
from sfumato.core.schema import Schema


def lightest(schema: Schema, rows: int) -> FloatArray:
    """Blank records: zeros; in a table, every number at its least and every category the first."""
    x = np.zeros((rows, *schema.shape), dtype=np.float32)
    for place, categories in _places(schema):
        x[:, place] = float(categories > 0)
    return x


def heaviest(schema: Schema, rows: int) -> FloatArray:
    """Ones; in a table, every number at its most and every category the last."""
    if schema.kind != "table":
        return np.ones((rows, *schema.shape), dtype=np.float32)
    x = np.zeros((rows, *schema.shape), dtype=np.float32)
    for place, categories in _places(schema):
        x[:, place + max(0, categories - 1)] = 1.0
    return x


def uniform(schema: Schema, rows: int, seed: int) -> FloatArray:
    """Pixels that are black or white by a coin; in a table, numbers and categories drawn uniformly."""
    rng = np.random.default_rng(seed)
    if schema.kind != "table":
        return rng.integers(0, 2, (rows, *schema.shape)).astype(np.float32)
    x = np.zeros((rows, *schema.shape), dtype=np.float32)
    for place, categories in _places(schema):
        if categories:
            x[np.arange(rows), place + rng.integers(0, categories, rows)] = 1.0
        else:
            x[:, place] = rng.random(rows)
    return x


def _places(schema: Schema) -> list[tuple[int, int]]:
    """Where each column of a table begins, and how many categories it has; 0 for a number."""
    places, start = [], 0
    for column in schema.columns if schema.kind == "table" else ():
        places.append((start, column.width if column.kind == "categorical" else 0))
        start += column.width
    return places
