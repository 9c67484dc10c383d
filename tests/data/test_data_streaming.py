"""A stream gives what ``load`` gives, a little at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from data_samples import png, table_columns, write

from sfumato.core.errors import DataError, UsageError
from sfumato.data import load, stream


def make(kind: str, folder: Path) -> tuple[Path, str]:
    rng = np.random.default_rng(0)
    if kind == "parquet":
        return write(folder / "t.parquet", **table_columns(100)), "income"
    if kind == "csv":
        pc.write_csv(pa.table(table_columns(100)), folder / "t.csv")
        return folder / "t.csv", "income"
    if kind == "npz":
        np.savez_compressed(
            folder / "t.npz", x=rng.integers(0, 256, (100, 6, 6), dtype=np.uint8), income=np.arange(100) % 3
        )
        return folder / "t.npz", "income"
    for place in range(100):
        file = folder / "t" / "ab"[place % 2] / f"{place}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(png(rng.integers(0, 256, (6, 6))))
    return folder / "t", "class"


@pytest.mark.parametrize("kind", ["parquet", "csv", "npz", "folder"])
def test_a_stream_equals_the_loaded_whole(kind: str, tmp_path: Path) -> None:
    path, label = make(kind, tmp_path)
    whole = load(path, utility=label)
    batches = list(stream(path, whole.schema, batch_rows=17, utility=True))
    assert all(len(batch) <= 17 for batch in batches) and len(batches) >= 6
    assert (np.concatenate([batch.x for batch in batches]) == whole.x).all()
    assert (np.concatenate([batch.ids for batch in batches]) == whole.ids).all()
    assert (np.concatenate([batch.label(label) for batch in batches]) == whole.label(label)).all()


def test_labels_are_left_out_unless_asked_for(people: Path) -> None:
    schema = load(people, utility="income", private="sex").schema
    batch = next(stream(people, schema))
    assert batch.utility == {} and batch.private == {} and len(batch) == 60
    batch = next(stream(people, schema, utility=True))
    assert set(batch.utility) == {"income"} and batch.private == {}
    batch = next(stream(people, schema, private=True))
    assert batch.utility == {} and set(batch.private) == {"sex"}


@pytest.mark.parametrize(("wanted", "missing"), [("utility", "income"), ("private", "sex")])
def test_a_label_that_is_asked_for_and_missing_is_a_fault_and_the_other_kind_is_not_needed(
    tmp_path: Path, people: Path, wanted: str, missing: str
) -> None:
    schema = load(people, utility="income", private="sex").schema
    columns = table_columns(20)
    del columns[missing]
    path = write(tmp_path / "new.parquet", **columns)
    with pytest.raises(DataError, match=f"label '{missing}' is missing"):
        stream(path, schema, **{wanted: True})
    other = "private" if wanted == "utility" else "utility"
    assert len(next(stream(path, schema, **{other: True}))) == 20


def test_errors_name_the_row_of_the_file(tmp_path: Path, people: Path) -> None:
    schema = load(people, utility="income", private="sex").schema
    columns = table_columns(50)
    columns["job"] = pa.array([*(["cook"] * 43), "pilot", *(["cook"] * 6)])
    path = write(tmp_path / "new.parquet", **columns)
    with pytest.raises(DataError, match="column 'job', row 43"):
        list(stream(path, schema, batch_rows=8))


def test_wrong_batch_rows_and_columns_are_told_at_once(people: Path, tmp_path: Path) -> None:
    schema = load(people, utility="income", private="sex").schema
    with pytest.raises(UsageError, match="batch_rows"):
        stream(people, schema, batch_rows=0)
    with pytest.raises(DataError, match="column is missing"):
        stream(write(tmp_path / "n.parquet", age=pa.array([1])), schema)


def test_a_large_file_streams_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.parquet"
    rows = 100_000
    cells = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(rows * 784, dtype=np.uint8)), 784)
    # One single row group of 78 million values: a reader that takes row groups whole needs over 300 MB.
    pq.write_table(pa.table({"pixels": cells}), path, row_group_size=rows, use_dictionary=False, compression="none")
    del cells
    code = (
        "import resource, sys\n"
        "from sfumato.core.schema import Schema\n"
        "from sfumato.data import stream\n"
        "import pyarrow.parquet\n"
        "schema = Schema('image', (1, 28, 28), x_columns=('pixels',))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert sum(len(batch) for batch in stream(sys.argv[1], schema)) == 100_000\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    if not sys.platform.startswith("linux"):
        pytest.skip("memory is measured in kilobytes on Linux only")
    out = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True, env=os.environ
    )
    assert int(out.stdout) / 1024 < 200
