"""A data set without one of its subjects: the neighbouring file, without writing one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from sfumato.data.encoding.records import ids_of
from sfumato.data.readers.locate import LocatedSource
from sfumato.data.readers.source import Batch, Source


class ThinnedSource(Source):
    """Another source without the rows of one subject; later rows move up, as they would in a file."""

    def __init__(self, source: Source, subject: str, id: str | None) -> None:
        super().__init__(
            source.label,
            source.stem,
            source.schema,
            untyped=source.untyped,
            cell_shapes=source.cell_shapes,
            class_names=source.class_names,
        )
        self._source, self._subject, self._id = source, subject, id

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[Batch]:
        import pyarrow as pa

        read = list(dict.fromkeys([*columns, *([self._id] if self._id else [])]))
        row = 0
        for first, batch in self._source.batches(read, batch_rows):
            others = ids_of(self._source, batch, first, self._id) != self._subject
            kept = batch.filter(pa.array(np.asarray(others))).select(list(columns))
            yield row, kept
            row += kept.num_rows


def without_subject(opened: LocatedSource, subject: str, id: str | None) -> LocatedSource:
    """Return the data set without the rows of ``subject``: an id, or file and row where nobody is named."""
    return replace(opened, parts={part: ThinnedSource(one, subject, id) for part, one in opened.parts.items()})
