"""Records that we encoded ourselves, as coded rows: columns and labels of a table, or main components of pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.core.coded_columns import CodedColumn, Ranks
from sfumato.core.dataset import Dataset, FloatArray, IntArray, Splits
from sfumato.core.guarantee import Guarantee
from sfumato.core.release import Release
from sfumato.core.schema import Column, Schema

Features = Callable[[FloatArray], FloatArray]
Coder = Callable[[Release], FloatArray]

_COMPONENTS = 16
"""Numbers that stand for a record without columns of its own."""


def coded_splits(
    splits: Splits, release: Release, private: Sequence[str] = ()
) -> tuple[Splits, Release, tuple[CodedColumn, ...], Coder]:
    """The three parts and the release as coded rows, with the labels of the release as columns; and what codes another
    release alike."""
    labels = [name for name in release.utility if name in splits.schema.utility]
    parts = [splits.owner, splits.attacker, splits.victim]
    columns, features = _features([*(part.x for part in parts), release.payload], splits.schema)
    columns += [CodedColumn(name, len(splits.schema.classes(name))) for name in labels]

    def coded(x: FloatArray, codes: Mapping[str, IntArray]) -> FloatArray:
        return np.concatenate([features(x), *(_column(codes, name) for name in labels)], axis=1)

    own = splits.schema
    schema = Schema("table", (len(columns),), utility=own.utility, private=own.private)
    datasets = [
        Dataset(coded(part.x, part.utility), schema, part.utility, part.private, part.ids, name=part.name)
        for part in parts
    ]
    marked = tuple(CodedColumn(one.name, one.categories, one.companion, one.name in private) for one in columns)
    rows = coded(release.payload, release.utility)

    def code(other: Release) -> FloatArray:
        return coded(other.payload, other.utility)

    return Splits(*datasets), coded_release(release.mechanism, rows, release.guarantee), marked, code


def coded_release(name: str, rows: FloatArray, guarantee: Guarantee) -> Release:
    """Coded rows as a release."""
    return Release(name, np.ascontiguousarray(rows, dtype=np.float32), guarantee)


def _features(records: Sequence[FloatArray], schema: Schema) -> tuple[list[CodedColumn], Features]:
    if schema.kind == "table" and schema.columns and sum(one.width for one in schema.columns) == schema.size:
        return _table_columns(records, schema)
    from sklearn.decomposition import PCA

    flat = [x.reshape(len(x), -1) for x in records]
    some = np.concatenate([x[:5_000] for x in (flat[1], flat[-1])])
    few = min(_COMPONENTS, *some.shape)
    narrow = PCA(few, svd_solver="randomized", random_state=0).fit(some)
    found = [narrow.transform(x) for x in flat]
    ranks = [Ranks.of([x[:, place].astype(np.float64) for x in found]) for place in range(few)]

    def features(x: FloatArray) -> FloatArray:
        there = narrow.transform(x.reshape(len(x), -1)).astype(np.float64)
        return np.stack([rank(there[:, place]) for place, rank in enumerate(ranks)], axis=1).astype(np.float32)

    return [CodedColumn(f"component {place + 1}") for place in range(few)], features


def _table_columns(records: Sequence[FloatArray], schema: Schema) -> tuple[list[CodedColumn], Features]:
    columns: list[CodedColumn] = []
    coders: list[Features] = []
    start = 0
    for column in schema.columns:
        here = slice(start, start + column.width)
        start += column.width
        if column.kind == "categorical":
            columns.append(CodedColumn(column.name, column.width))
            coders.append(_OneHot(here))
            continue
        rank = Ranks.of([_numbers(x[:, here], column) for x in records])
        columns.append(CodedColumn(column.name))
        if column.nullable:
            columns.append(CodedColumn(column.name, 2, companion=True))

        def coder(x: FloatArray, here: slice = here, column: Column = column, rank: Ranks = rank) -> FloatArray:
            ranks = rank(_numbers(x[:, here], column))
            gone = [x[:, here][:, 1] > 0.5] if column.nullable else []
            return np.stack([ranks, *gone], axis=1).astype(np.float32)

        coders.append(coder)

    def features(x: FloatArray) -> FloatArray:
        return np.concatenate([coder(x) for coder in coders], axis=1)

    return columns, features


@dataclass(frozen=True)
class _OneHot:
    here: slice

    def __call__(self, x: FloatArray) -> FloatArray:
        return np.asarray(x[:, self.here].argmax(axis=1)[:, None], dtype=np.float32)


def _numbers(part: FloatArray, column: Column) -> npt.NDArray[np.float64]:
    """In the units of the file, NaN where missing."""
    values = _in_units(part[:, 0], column.low, column.high, column.integer)
    return np.where(part[:, 1] > 0.5, np.nan, values) if column.nullable else values


def _in_units(values: FloatArray, low: float, high: float, integer: bool) -> npt.NDArray[np.float64]:
    """As a file would have them: whole numbers are whole."""
    return np.rint(low + values.astype(np.float64) * (high - low)) if integer else values.astype(np.float64)


def _column(labels: Mapping[str, IntArray], name: str) -> FloatArray:
    return np.asarray(labels[name], dtype=np.float32)[:, None]
