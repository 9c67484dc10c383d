"""A category that training never saw stops a release, or counts as missing where that is asked for and can be told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from data_samples import table_columns, write

from sfumato.core.errors import DataError
from sfumato.data import load, stream
from sfumato.data.encoding.tables import Unseen


def files(folder: Path, column: str) -> tuple[Path, Path]:
    """A file to learn from, and one whose third record has an unknown value; ``job`` has gaps, ``sex`` has none."""
    known = table_columns(60)
    changed = known[column].to_pylist()
    changed[2] = "juggler"
    return write(folder / "known.parquet", **known), write(
        folder / "new.parquet", **{**known, column: pa.array(changed)}
    )


def test_unseen_category_is_counted_and_missing_if_asked_for(tmp_path: Path) -> None:
    known, new = files(tmp_path, "job")
    schema = load(known, utility=["income"]).schema
    with pytest.raises(DataError, match=r"row 2: 'juggler' is not among .* or release with --unseen missing"):
        next(stream(new, schema))
    counted = Unseen()
    found = next(stream(new, schema, unseen=counted))
    assert counted == {"job": 1}
    start = sum(column.width for column in schema.columns[: [c.name for c in schema.columns].index("job")])
    width = next(column.width for column in schema.columns if column.name == "job")
    assert found.x[2, start : start + width].tolist() == [0.0] * (width - 1) + [1.0]  # the last is "missing"
    others = np.delete(np.arange(60), 2)
    assert (found.x[others] == next(stream(known, schema)).x[others]).all()


def test_unseen_category_is_refused_where_missing_has_no_place(tmp_path: Path) -> None:
    known, new = files(tmp_path, "sex")
    schema = load(known, utility=["income"]).schema
    with pytest.raises(DataError, match=r"'juggler' .* cannot count as missing, because no value of this column was"):
        next(stream(new, schema, unseen=Unseen()))
