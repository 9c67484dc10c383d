"""Delimited text files: CSV and its relatives, compressed or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sfumato.data.file_errors import Place
from sfumato.data.readers.dialect import CellNumbers, dialect_of, stem_of
from sfumato.data.readers.parquet import brief, check_names
from sfumato.data.readers.source import Batch, Source

BLOCK_BYTES = 2**22


class DelimitedSource(Source):
    """A text file with a header. Cells are read as text, so that no type is guessed from the first block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._dialect = dialect_of(path)
        reader = self._open()
        names = reader.schema.names
        check_names(str(path), names)
        super().__init__(str(path), stem_of(path), reader.schema, untyped=True)
        self.remarks = tuple(self._remarks(names))

    def _remarks(self, names: Sequence[str]) -> Iterator[tuple[str, str]]:
        if self._dialect.strange is not None:
            what = f"line {self._dialect.strange} is not UTF-8, so the file is read as Windows-1252 (Latin-1)"
            yield what, "save it as UTF-8 if letters look wrong"
        if len(names) == 1:
            yield f"has one column only, '{names[0][:40]}'", "divide the columns by comma, semicolon, tab or |"

    def _open(self, columns: Sequence[str] | None = None) -> Any:
        import pyarrow as pa
        import pyarrow.csv as pc

        options = {
            "read_options": pc.ReadOptions(
                block_size=BLOCK_BYTES, use_threads=False, encoding=self._dialect.encoding.replace("utf-8", "utf8")
            ),
            "parse_options": pc.ParseOptions(delimiter=self._dialect.delimiter, newlines_in_values=True),
        }
        try:
            with pa.input_stream(str(self._path), compression="detect") as stream:
                names = pc.open_csv(stream, **options).schema.names
            convert = pc.ConvertOptions(
                column_types={name: pa.string() for name in names},
                strings_can_be_null=False,
                include_columns=None if columns is None else list(columns),
            )
            stream = pa.input_stream(str(self._path), compression="detect")
            return pc.open_csv(stream, **options, convert_options=convert)
        except (pa.ArrowException, OSError, UnicodeError) as error:
            what = f"is no readable table of text ({brief(error)})"
            raise Place(str(self._path)).fault(
                what, "give a file with a header, whose lines have equally many cells"
            ) from error

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[Batch]:
        import pyarrow as pa

        numbers = CellNumbers(self.label, self._dialect.delimiter)
        row = 0
        try:
            for block in self._open(columns):
                for start in range(0, block.num_rows, batch_rows):
                    batch = block.slice(start, batch_rows)
                    cells = [numbers.read(name, row, batch.column(name)) for name in columns]
                    yield row, pa.RecordBatch.from_arrays(cells, names=list(columns))
                    row += batch.num_rows
        except (pa.ArrowException, OSError, UnicodeError) as error:
            what = f"cannot be read after line {row + 1} ({brief(error)})"
            raise Place(self.label).fault(what, "repair or remove the faulty line") from error
