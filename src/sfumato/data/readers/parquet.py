"""Parquet files, read a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core.documents import json_value
from sfumato.core.errors import DataError
from sfumato.data.file_errors import Place
from sfumato.data.readers.source import Batch, Source

PARQUET_BUFFER_BYTES = 2**20


class ParquetSource(Source):
    """A Parquet file, read a batch at a time; ``file`` is it, opened, where ``path`` is an address."""

    def __init__(self, path: Path | str, file: Any = None) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            # Reading ahead by pages, not row groups, keeps memory small however the file was written.
            content = path if file is None else file
            self._file = pq.ParquetFile(content, pre_buffer=False, buffer_size=PARQUET_BUFFER_BYTES)
        except (pa.ArrowException, OSError) as error:
            what = f"not a readable Parquet file ({brief(error)})"
            raise Place(str(path)).fault(what, "write it again") from error
        schema = self._file.schema_arrow
        check_names(str(path), schema.names)
        super().__init__(
            str(path),
            Path(path).stem,
            schema,
            rows=self._file.metadata.num_rows,
            class_names=_class_names(schema.metadata or {}),
        )

    @property
    def groups(self) -> list[int]:
        """The rows of each row group."""
        about = self._file.metadata
        return [about.row_group(place).num_rows for place in range(about.num_row_groups)]

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[Batch]:
        yield from self.between(0, self.rows or 0, columns, batch_rows)

    def between(self, first: int, last: int, columns: Sequence[str], batch_rows: int) -> Iterator[Batch]:
        """The rows from ``first`` to before ``last``; row groups without any of them are not read."""
        import pyarrow as pa

        starts = np.cumsum([0, *self.groups])
        groups = [place for place, start in enumerate(starts[:-1]) if start < last and starts[place + 1] > first]
        row = first
        try:
            reader = self._file.iter_batches(
                batch_size=batch_rows, row_groups=groups, columns=list(columns), use_threads=False
            )
            for batch in _cut(reader, first - int(starts[groups[0]]) if groups else 0, last - first, batch_rows):
                yield row, batch
                row += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            what = f"damaged after row {row} ({brief(error)})"
            raise Place(self.label).fault(what, "write the file again") from error


def _cut(batches: Iterable[Any], skipped: int, rows: int, batch_rows: int) -> Iterator[Any]:
    """So many ``rows`` after the ``skipped`` ones, ``batch_rows`` at a time; those that fit go on as they came."""
    import pyarrow as pa

    held: list[Any] = []
    count = 0
    for batch in batches:
        rest = batch.slice(skipped, max(0, rows))
        skipped = max(0, skipped - batch.num_rows)
        rows -= rest.num_rows
        held, count = [*held, rest], count + rest.num_rows
        if count < batch_rows and rows > 0:
            continue
        if len(held) > 1:
            whole = pa.Table.from_batches(held)
            held = whole.slice(0, batch_rows).combine_chunks().to_batches() + whole.slice(batch_rows).to_batches()
        yield held[0]
        held, count = held[1:], count - held[0].num_rows
        if rows <= 0:
            break
    if count:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()


def check_names(label: str, names: Sequence[str]) -> None:
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise Place(label, twice[0]).fault("two columns have this name", "rename one of them")
    if not names:
        raise Place(label).fault("has no columns", "provide a file with a header and records")


def _class_names(metadata: dict[bytes, bytes]) -> dict[str, tuple[str, ...]]:
    """Return the class names of integer labels from the metadata of the ``datasets`` library, if there are any."""
    try:
        features = json_value(metadata[b"huggingface"], "metadata")["info"]["features"]
        return {
            column: tuple(str(name) for name in feature["names"])
            for column, feature in features.items()
            if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" and feature.get("names")
        }
    except (KeyError, TypeError, ValueError, AttributeError, DataError):
        return {}


def brief(error: Exception) -> str:
    """Return the first line of a library's error message, shortened."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:160].rstrip(".")
