"""Folders of Parquet files that together are one file, as tools that write in parallel leave them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sfumato.data.file_errors import Place
from sfumato.data.readers.parquet import ParquetSource
from sfumato.data.readers.source import Batch, Source

SUFFIXES = (".parquet", ".pq")


def parquet_files(folder: Path) -> list[Path]:
    """The Parquet files of a folder, by name; hidden ones, and those that begin with ``_``, are somebody's notes."""
    names = (file for file in folder.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file())
    return sorted(file for file in names if not file.name.startswith((".", "_")))


class ParquetFolder(Source):
    """The files of a folder one after the other, in the order of their names; rows are counted through."""

    def __init__(self, folder: Path | str, files: Sequence[ParquetSource]) -> None:
        self.files = tuple(files)
        first = self.files[0]
        for other in self.files[1:]:
            if not other.schema.equals(first.schema):
                what = f"has other columns or types than {Path(first.label).name}"
                raise Place(other.label).fault(what, "write all files of the folder alike")
        rows = sum(one.rows or 0 for one in self.files)
        super().__init__(str(folder), Path(folder).name, first.schema, rows=rows, class_names=first.class_names)

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[Batch]:
        before = 0
        for one in self.files:
            for row, batch in one.batches(columns, batch_rows):
                yield before + row, batch
            before += one.rows or 0
