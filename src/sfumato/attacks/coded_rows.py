"""Distances between coded rows (``core.coded_columns``), a block at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from sfumato.core.coded_columns import CodedColumn
from sfumato.core.dataset import FloatArray, IntArray

_CELLS = 8_000_000
"""Distances that are held at once."""

Doubles = npt.NDArray[np.float64]


def distances(
    points: FloatArray, among: FloatArray, columns: Sequence[CodedColumn], used: Sequence[int] | None = None
) -> Iterator[tuple[slice, Doubles]]:
    """Blocks of points, each with its summed distances to all rows, (block, M): |rank − rank| and 1 a category."""
    from scipy.spatial.distance import cdist

    kept = range(len(columns)) if used is None else used
    numbers = [place for place in kept if columns[place].number]
    codes = [place for place in kept if not columns[place].number]
    block = max(1, _CELLS // max(1, len(among)))
    far, there = (_picked(among, numbers), _picked(among, codes))
    for start in range(0, len(points), block):
        rows = slice(start, min(len(points), start + block))
        found = np.zeros((rows.stop - rows.start, len(among)))
        if numbers:
            found += cdist(_picked(points[rows], numbers), far, "cityblock")
        if codes:
            found += len(codes) * cdist(_picked(points[rows], codes), there, "hamming")
        yield rows, found


def nearest(
    points: FloatArray,
    among: FloatArray,
    columns: Sequence[CodedColumn],
    k: int = 1,
    used: Sequence[int] | None = None,
) -> tuple[IntArray, Doubles]:
    """The k nearest rows of each point and their mean distances a column, (N, k), nearest first."""
    k = min(k, len(among))
    rows = np.empty((len(points), k), dtype=np.int64)
    apart = np.empty((len(points), k))
    count = max(1, len(columns) if used is None else len(used))
    for where, found in distances(points, among, columns, used):
        some = np.argpartition(found, k - 1, axis=1)[:, :k] if k < len(among) else _every(found)
        values = np.take_along_axis(found, some, axis=1)
        order = np.lexsort((some, values), axis=1)
        rows[where] = np.take_along_axis(some, order, axis=1)
        apart[where] = np.take_along_axis(values, order, axis=1) / count
    return rows, apart


def one_hot(rows: FloatArray, columns: Sequence[CodedColumn], skip: int | None = None) -> FloatArray:
    """Numbers as they are and an entry for each of a column's first categories, for learners: (N, width)."""
    parts = []
    for place, column in enumerate(columns):
        if place == skip:
            continue
        values = rows[:, place]
        if column.number or column.categories > _MOST_ENTRIES:
            parts.append(values[:, None])
        else:
            parts.append((values[:, None] == np.arange(column.categories)).astype(np.float32))
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(rows), 1), dtype=np.float32)


def in_order(rows: FloatArray) -> FloatArray:
    """The rows sorted: an attack that takes some of them takes the same, however a file is sorted."""
    return np.ascontiguousarray(rows[np.lexsort(rows.T[::-1])]) if len(rows) and rows.shape[1] else rows


def row_keys(rows: FloatArray) -> npt.NDArray[np.void]:
    """A key for each row, equal where all its values are."""
    flat = np.ascontiguousarray(rows, dtype=np.float32)
    return flat.view(np.dtype((np.void, flat.dtype.itemsize * flat.shape[1]))).ravel()


_MOST_ENTRIES = 30


def _picked(rows: FloatArray, places: Sequence[int]) -> Doubles:
    return np.ascontiguousarray(rows[:, list(places)], dtype=np.float64)


def _every(found: Doubles) -> IntArray:
    return np.broadcast_to(np.arange(found.shape[1]), found.shape)
