"""Parts of a release hold every row once, cut where one machine cuts its batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.core.errors import UsageError
from sfumato.data.readers.locate import open_data
from sfumato.data.readers.parquet import ParquetSource
from sfumato.mechanisms import mechanism_class
from sfumato.scale import bulk_release, release_parts
from sfumato.scale.release_parts import BATCH_ROWS, parts_of
from sfumato.workflow import UNAUDITED, fit_run, resolve


@pytest.mark.parametrize("group", [1000, 4096, 7000, 30_000])
def test_parts_hold_every_row_once_in_whole_batches(
    tmp_path: Path, group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_parts, "FEWEST_ROWS", BATCH_ROWS)
    folder = tmp_path / "rows"
    folder.mkdir()
    for name, rows in (("a", 21_000), ("b", 100), ("c", 4096)):
        pq.write_table(pa.table({"row": np.arange(rows)}), folder / f"{name}.parquet", row_group_size=group)
    opened = open_data(folder)
    expected = [batch.column("row").to_pylist() for _, batch in opened.reference.batches(["row"], BATCH_ROWS)]
    found = []
    for part in parts_of(opened):
        for first, batch in ParquetSource(Path(part.file)).between(part.first, part.last, ["row"], BATCH_ROWS):
            assert batch.column("row")[0].as_py() == first
            found.append(batch.column("row").to_pylist())
    assert found == expected


def test_parquet_at_an_address_is_read_as_a_file_is(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    pq.write_table(pa.table({"row": np.arange(10)}), tmp_path / "rows.parquet")
    there = open_data(f"file://{tmp_path}")
    assert [batch.column("row").to_pylist() for _, batch in there.reference.batches(["row"], 6)] == [
        [0, 1, 2, 3, 4, 5],
        [6, 7, 8, 9],
    ]


@pytest.mark.parametrize(("name", "why"), [("phase", "hides records among one another"), ("ars", "ties its noise to")])
def test_what_hangs_on_the_whole_file_is_refused(name: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"{name} {why} .* without --engine ray"):
        bulk_release._releases_apart(mechanism_class(name)())


def test_only_parquet_is_released_by_parts(tmp_path: Path, table: Callable[..., Path]) -> None:
    run = tmp_path / "run"
    fit_run(resolve("dnn", {"source": str(table(300)), "utility": ["dark"]}, {"epochs": 1}, seed=0), run)
    with pytest.raises(UsageError, match="--engine ray releases Parquet, and digits is none"):
        bulk_release.release_over(None, run, "digits", tmp_path / "out", warrant=UNAUDITED)  # type: ignore[arg-type]
