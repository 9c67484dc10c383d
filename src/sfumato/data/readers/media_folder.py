"""Folders of images or .wav files, with one sub-folder per class or a ``labels.csv`` with a column ``file``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sfumato.data.file_errors import Place
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
            what = "contains no images or .wav files"
            raise Place(str(path)).fault(what, "provide a folder with one sub-folder per class")
        self._x = "audio" if all(Path(name).suffix.lower() in AUDIO_SUFFIXES for name in self._files) else "image"
        if self._x in facts:
            where = Place(str(path / LABELS), self._x)
            raise where.fault("this column name is reserved for the files themselves", "rename the column")
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
        return _with_classes({"file": names})

    def _from_labels(self) -> dict[str, list[str]]:
        import pyarrow as pa

        from sfumato.data.readers.delimited import DelimitedSource

        source = DelimitedSource(self._path / LABELS)
        if "file" not in source.columns:
            remedy = "add one with each file's path inside the folder"
            raise Place(source.label).fault("has no column 'file'", remedy)
        table = pa.Table.from_batches(
            [batch for _, batch in source.batches(source.columns, 65536)], schema=source.schema
        )
        facts: dict[str, list[str]] = table.to_pydict()
        root = self._path.resolve()
        for row, name in enumerate(facts["file"]):
            where = Place(source.label, "file", row)
            target = (self._path / name).resolve()
            if not target.is_relative_to(root):
                raise where.fault(f"'{name}' lies outside the folder", "list only files inside the folder")
            if not target.is_file():
                raise where.fault(f"'{name}' does not exist", "correct the name or remove the row")
        return facts if CLASS in facts else _with_classes(facts)

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
                what = f"is larger than {MAX_CELL_BYTES >> 20} MB"
                raise Place(str(file), row=row).fault(what, "make it smaller")
            cells.append({"bytes": file.read_bytes(), "path": self._files[row]})
        return pa.array(cells, self.schema.field(self._x).type)


def _with_classes(facts: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the columns of a folder with the class of each file, if all of them lie in sub-folders."""
    names = facts["file"]
    if not names or not all("/" in name for name in names):
        return facts
    return {**facts, CLASS: [name.split("/", 1)[0] for name in names]}
