"""Records that we encoded ourselves, as coded rows: columns and labels of a table, or main components of pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sfumato.core.coded_columns import CodedColumn, common_ranks
from sfumato.core.dataset import Dataset, FloatArray, IntArray, Splits
from sfumato.core.guarantee import Guarantee
from sfumato.core.release import Release
from sfumato.core.schema import Schema

_COMPONENTS = 16
"""Numbers that stand for a record without columns of its own."""


def coded_splits(
    splits: Splits, release: Release, private: Sequence[str] = ()
) -> tuple[Splits, Release, tuple[CodedColumn, ...]]:
    """The three parts and the release as coded rows, with the labels of the release as columns."""
    labels = [name for name in release.utility if name in splits.schema.utility]
    parts = [splits.owner, splits.attacker, splits.victim]
    records = [*(part.x for part in parts), release.payload]
    codes = [*(part.utility for part in parts), release.utility]
    columns, coded = _features(records, splits.schema)
    columns += [CodedColumn(name, len(splits.schema.classes(name))) for name in labels]
    rows = [
        np.concatenate([x, *(_column(own, name) for name in labels)], axis=1)
        for x, own in zip(coded, codes, strict=True)
    ]
    own = splits.schema
    schema = Schema("table", (len(columns),), utility=own.utility, private=own.private)
    datasets = [
        Dataset(x, schema, part.utility, part.private, part.ids, name=part.name)
        for x, part in zip(rows, parts, strict=False)
    ]
    marked = tuple(CodedColumn(one.name, one.categories, one.companion, one.name in private) for one in columns)
    return Splits(*datasets), coded_release(release.mechanism, rows[-1], release.guarantee), marked


def coded_release(name: str, rows: FloatArray, guarantee: Guarantee) -> Release:
    """Coded rows as a release."""
    return Release(name, np.ascontiguousarray(rows, dtype=np.float32), guarantee)


def _features(records: Sequence[FloatArray], schema: Schema) -> tuple[list[CodedColumn], list[FloatArray]]:
    if schema.kind == "table" and schema.columns and sum(one.width for one in schema.columns) == schema.size:
        return _table_columns(records, schema)
    from sklearn.decomposition import PCA

    flat = [x.reshape(len(x), -1) for x in records]
    some = np.concatenate([x[:5_000] for x in (flat[1], flat[-1])])
    few = min(_COMPONENTS, *some.shape)
    narrow = PCA(few, svd_solver="randomized", random_state=0).fit(some)
    found = [narrow.transform(x) for x in flat]
    ranked = [common_ranks([x[:, place].astype(np.float64) for x in found]) for place in range(few)]
    rows = [np.stack(one, axis=1).astype(np.float32) for one in zip(*ranked, strict=True)]
    return [CodedColumn(f"component {place + 1}") for place in range(few)], rows


def _table_columns(records: Sequence[FloatArray], schema: Schema) -> tuple[list[CodedColumn], list[FloatArray]]:
    columns: list[CodedColumn] = []
    made: list[list[FloatArray]] = [[] for _ in records]
    start = 0
    for column in schema.columns:
        parts = [x[:, start : start + column.width] for x in records]
        start += column.width
        if column.kind == "categorical":
            columns.append(CodedColumn(column.name, column.width))
            for out, part in zip(made, parts, strict=True):
                out.append(part.argmax(axis=1).astype(np.float32)[:, None])
            continue
        missing = [part[:, 1] > 0.5 if column.nullable else np.zeros(len(part), bool) for part in parts]
        values = [
            np.where(gone, np.nan, _in_units(part[:, 0], column.low, column.high, column.integer))
            for part, gone in zip(parts, missing, strict=True)
        ]
        columns.append(CodedColumn(column.name))
        for out, ranks in zip(made, common_ranks(values), strict=True):
            out.append(ranks.astype(np.float32)[:, None])
        if column.nullable:
            columns.append(CodedColumn(column.name, 2, companion=True))
            for out, gone in zip(made, missing, strict=True):
                out.append(gone.astype(np.float32)[:, None])
    return columns, [np.concatenate(out, axis=1) for out in made]


def _in_units(values: FloatArray, low: float, high: float, integer: bool) -> FloatArray:
    """As a file would have them: whole numbers are whole."""
    return np.rint(low + values.astype(np.float64) * (high - low)) if integer else values.astype(np.float64)


def _column(labels: Mapping[str, IntArray], name: str) -> FloatArray:
    return np.asarray(labels[name], dtype=np.float32)[:, None]
