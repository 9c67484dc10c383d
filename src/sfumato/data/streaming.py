"""``stream``: read a source of any size as a sequence of small data sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from sfumato.core.dataset import Dataset
from sfumato.core.errors import UsageError
from sfumato.core.schema import Schema
from sfumato.data.column_roles import of_schema
from sfumato.data.encoding.records import encode_batch
from sfumato.data.encoding.tables import Unseen
from sfumato.data.readers.locate import SourceName, open_data


def stream(
    source: SourceName,
    schema: Schema,
    *,
    batch_rows: int = 4096,
    utility: bool = False,
    private: bool = False,
    unseen: Unseen | None = None,
) -> Iterator[Dataset]:
    """Iterate over the records in file order, encoded by ``schema``, with one batch in memory at a time.

    Args:
        source: A named data set, a file or a folder.
        schema: How to encode the records, from an earlier ``load``.
        batch_rows: Largest number of records per batch.
        utility: Read the utility labels; the file must have all of them. If false, the columns are not read.
        private: Read the private labels, likewise.
        unseen: Counts, by column, categories that training never saw, which then count as missing; without it such a
            category is a fault.

    Returns:
        An iterator over data sets of at most ``batch_rows`` records. Asked for in this order, their nonces count copies
        over the whole source.

    Raises:
        DataError: A column is missing or a record does not fit the schema; the message gives the row in the file.
    """
    if batch_rows < 1:
        raise UsageError(f"batch_rows must be at least 1, got {batch_rows}.")
    opened = open_data(source)
    plans = [
        (one, of_schema(one, schema, opened.entry, utility=utility, private=private)) for one in opened.parts.values()
    ]

    def batches() -> Iterator[Dataset]:
        earlier: Counter[bytes] = Counter()
        for one, roles in plans:
            for first_row, batch in one.batches(roles.columns(), batch_rows):
                if batch.num_rows:
                    piece = encode_batch(
                        one, batch, first_row, schema, roles, name=opened.name, side=opened.side, unseen=unseen
                    )
                    yield replace(piece, earlier=earlier)

    return batches()
