"""Tables can be encoded and decoded again."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from data_samples import write
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import DataError
from sfumato.data import decode_table, load

numbers = st.none() | st.floats(-1e6, 1e6, allow_nan=False, width=32)
wholes = st.none() | st.integers(-10_000, 10_000)
words = st.none() | st.sampled_from(["red", "green", "blue", "(missing)"])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(numbers, wholes, words), min_size=1, max_size=20))
def test_decoding_undoes_encoding(rows: list[tuple[float | None, int | None, str | None]]) -> None:
    with TemporaryDirectory() as folder:
        table = {
            "real": pa.array([row[0] for row in rows], pa.float64()),
            "whole": pa.array([row[1] for row in rows], pa.int64()),
            "word": pa.array([row[2] for row in rows], pa.string()),
        }
        data = load(write(Path(folder) / "t.parquet", **table))
    assert data.x.min() >= 0 and data.x.max() <= 1
    back = decode_table(data.x, data.schema).to_pydict()
    assert back["word"] == [row[2] for row in rows]
    span = next(c.high - c.low for c in data.schema.columns if c.name == "real")
    for got, row in zip(back["real"], rows, strict=True):
        assert (got is None) == (row[0] is None)
        if got is not None:
            assert got == pytest.approx(row[0], abs=span * 1e-6 + 1e-9)
    assert back["whole"] == [row[1] for row in rows]


def test_any_vector_decodes_to_a_valid_record(people: Path) -> None:
    data = load(people, utility="income", private="sex")
    noise = np.random.default_rng(0).normal(0.5, 3, (200, *data.schema.shape))
    table = decode_table(noise, data.schema)
    for column in data.schema.columns:
        values = [value for value in table.column(column.name).to_pylist() if value is not None]
        if column.kind == "numeric":
            assert min(values) >= column.low and max(values) <= column.high
        else:
            assert set(values) <= set(column.categories)


def test_only_tables_decode(pictures: Path) -> None:
    data = load(pictures, utility="label")
    with pytest.raises(DataError, match="only tables"):
        decode_table(data.x, data.schema)


def test_a_constant_column_encodes_to_zero_and_decodes_to_itself(tmp_path: Path) -> None:
    data = load(write(tmp_path / "c.parquet", same=pa.array([7, 7, 7]), other=pa.array([1, 2, 3])))
    assert (data.x[:, 0] == 0).all()
    assert decode_table(data.x, data.schema).column("same").to_pylist() == [7, 7, 7]
