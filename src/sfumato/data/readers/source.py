"""The interface every file reader offers to the rest of this package: named arrow columns in batches of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Batch = tuple[int, Any]
"""The row number of the first record in the file, and a ``pyarrow.RecordBatch``."""


class Source(ABC):
    """Records in a file or in memory.

    ``label`` is its name in messages, and ``stem`` goes into the ids of rows without a subject. ``untyped`` means
    that text may stand for numbers (CSV). ``cell_shapes`` gives the shapes of nested cells, which arrow cannot
    express, and ``class_names`` the names behind integer codes if the file carries them. ``remarks`` say what the
    reader had to assume, and what to do if it is wrong.
    """

    def __init__(
        self,
        label: str,
        stem: str,
        schema: Any,
        *,
        rows: int | None = None,
        untyped: bool = False,
        cell_shapes: Mapping[str, tuple[int, ...]] | None = None,
        class_names: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.label = label
        self.stem = stem
        self.schema = schema
        self.rows = rows
        self.untyped = untyped
        self.cell_shapes = dict(cell_shapes or {})
        self.class_names = dict(class_names or {})
        self.remarks: tuple[tuple[str, str], ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names in file order."""
        return tuple(self.schema.names)

    @abstractmethod
    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[Batch]:
        """Iterate over the records in file order, at most ``batch_rows`` at a time, with these columns only."""


class MemorySource(Source):
    """An arrow table that is already in memory."""

    def __init__(self, label: str, stem: str, table: Any, **facts: Any) -> None:
        super().__init__(label, stem, table.schema, rows=table.num_rows, **facts)
        self._table = table

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[Batch]:
        row = 0
        for batch in self._table.select(list(columns)).to_batches(max_chunksize=batch_rows):
            yield row, batch
            row += batch.num_rows
