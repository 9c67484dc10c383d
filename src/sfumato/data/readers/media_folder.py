"""Folders of images or .wav files, with one sub-folder per class or a ``labels.csv`` with a column ``file``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sfumato.data.file_errors import fault
from sfumato.data.limits import MAX_CELL_BYTES
from sfumato.data.readers.source import Batch, Source

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"})
AUDIO_SUFFIXES = frozenset({".wav"})
LABELS = "labels.csv"
CLASS = "class"


class FolderSource(Source):
    """A folder with one record per file, in the order of ``labels.csv`` or else sorted by name.

    The columns are ``image`` (or ``audio``), ``file``, ``class`` if there are sub-folders, and those of
    ``labels.csv``. Row numbers count the files in that order.
    """

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self._path = path
        facts = self._from_labels() if (path / LABELS).is_file() else self._from_listing()
        self._files = facts["file"]
        if not self._files:
            raise fault(
                str(path),
                "contains no images or .wav files",
                remedy="provide a folder with one sub-folder per class",
            )
        self._x = "audio" if all(Path(name).suffix.lower() in AUDIO_SUFFIXES for name in self._files) else "image"
        if self._x in facts:
            raise fault(
                str(path / LABELS),
                "this column name is reserved for the files themselves",
                column=self._x,
                remedy="rename the column",
            )
        self._facts = pa.table({name: pa.array(values, pa.string()) for name, values in facts.items()})
        cell = pa.field(self._x, pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
        super().__init__(str(path), path.name, self._facts.schema.insert(0, cell), rows=len(self._files), untyped=True)

    def _from_listing(self) -> dict[str, list[str]]:
        known = IMAGE_SUFFIXES | AUDIO_SUFFIXES
        names = sorted(
            file.relative_to(self._path).as_posix()
            for file in self._path.rglob("*")
            if file.suffix.lower() in known
            and file.is_file()
            and not any(part.startswith(".") for part in file.relative_to(self._path).parts)
        )
        facts = {"file": names}
        if names and all("/" in name for name in names):
            facts[CLASS] = [name.split("/", 1)[0] for name in names]
        return facts

    def _from_labels(self) -> dict[str, list[str]]:
        import pyarrow as pa

        from sfumato.data.readers.parquet_csv import CsvSource

        source = CsvSource(self._path / LABELS)
        if "file" not in source.columns:
            raise fault(source.label, "has no column 'file'", remedy="add one with each file's path inside the folder")
        table = pa.Table.from_batches(
            [batch for _, batch in source.batches(source.columns, 65536)], schema=source.schema
        )
        facts: dict[str, list[str]] = table.to_pydict()
        root = self._path.resolve()
        for row, name in enumerate(facts["file"]):
            target = (self._path / name).resolve()
            if not target.is_relative_to(root):
                raise fault(
                    source.label,
                    f"'{name}' lies outside the folder",
                    column="file",
                    row=row,
                    remedy="list only files inside the folder",
                )
            if not target.is_file():
                raise fault(
                    source.label,
                    f"'{name}' does not exist",
                    column="file",
                    row=row,
                    remedy="correct the name or remove the row",
                )
        if CLASS not in facts and facts["file"] and all("/" in name for name in facts["file"]):
            facts[CLASS] = [name.split("/", 1)[0] for name in facts["file"]]
        return facts

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[Batch]:
        import pyarrow as pa

        with_x = self._x in columns
        # Encoded images are large, so read fewer files at once to bound memory.
        step = min(batch_rows, 256) if with_x else batch_rows
        for first in range(0, len(self._files), step):
            part = self._facts.slice(first, step)
            arrays = [
                self._cells(first, part.num_rows) if name == self._x else part.column(name).combine_chunks()
                for name in columns
            ]
            yield first, pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _cells(self, first: int, count: int) -> Any:
        import pyarrow as pa

        cells = []
        for row in range(first, first + count):
            file = self._path / self._files[row]
            if file.stat().st_size > MAX_CELL_BYTES:
                raise fault(str(file), f"is larger than {MAX_CELL_BYTES >> 20} MB", row=row, remedy="make it smaller")
            cells.append({"bytes": file.read_bytes(), "path": self._files[row]})
        return pa.array(cells, self.schema.field(self._x).type)
