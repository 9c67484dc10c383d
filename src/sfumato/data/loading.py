"""``load``: read any source into memory as one ``Dataset``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import Dataset, IntArray, joined_hashes
from sfumato.core.errors import DataError, UsageError
from sfumato.core.schema import Schema
from sfumato.data.column_roles import Names, Roles, of_schema, resolve
from sfumato.data.domain import DomainName, declared_schema, domain_for
from sfumato.data.drafted_domain import draft
from sfumato.data.encoding.records import encode_batch, ids_of
from sfumato.data.file_errors import Place
from sfumato.data.given_tables import Given, open_given
from sfumato.data.placement import within_limit
from sfumato.data.readers.locate import LocatedSource, Part, SourceName, open_data
from sfumato.data.readers.source import Source
from sfumato.data.schema_inference import infer

BATCH_ROWS = 4096
_BATCH_BYTES = 2**24


def load(
    source: Given,
    *,
    x: Names = None,
    utility: Names = None,
    private: Names = None,
    id: str | None = None,
    part: Part = "all",
    limit: int | None = None,
    schema: Schema | None = None,
    domain: DomainName = None,
    require_labels: bool = True,
    seed: int = 0,
) -> Dataset:
    """Load a named data set, a file or a folder.

    Ranges, categories and classes are learned from the training part if there is one, unless ``schema`` or ``domain``
    gives them. Some named sets bring a domain of their own.

    Args:
        source: A named data set; a Parquet, CSV or npz file; a folder of images, recordings or Parquet parts; or what
            is in memory: a DataFrame, arrays by name, a data set of torch or Hugging Face.
        x: Columns of the record; by default the record column, or every column that is not a label or the id.
            ``"name:3x128"`` gives flat lists of numbers a shape.
        utility: Labels that others may learn: columns or expressions such as ``"age >= 40"`` or
            ``"circle=label in {0,6,8,9}"``. A column that a label uses is never part of ``x``.
        private: Labels that nobody may learn, written in the same way.
        id: Column that names the subject of a record; by default every record is its own subject.
        part: Which part of the source to read: ``"train"``, ``"test"`` or ``"all"``.
        limit: Read a subset of about this many records; of a file that is no named set, at most about this many and
            at least half of it (see docs/data.md). Which records are in it depends on each record and the seed alone.
        schema: Encode the records exactly as in an earlier ``load``; replaces the column options and ``domain``.
        domain: Declared ranges and categories (see ``sfumato.data.domain``). A value outside them is an error.
        require_labels: Whether a label of ``schema`` that the file lacks is an error.
        seed: Seed of the subset.

    Returns:
        The records as float32 in [0, 1] with coded labels, subject ids and the schema. Where a label is a number,
        records without one are left out (``left_out``).

    Raises:
        UsageError: A name is unknown, or the options contradict each other.
        DataError: The source cannot be read; the message names file, column and row.
    """
    opened = open_given(source, "data")
    if schema is not None and any(one is not None for one in (x, utility, private, id, domain)):
        raise UsageError(
            "x, utility, private, id and domain come with the schema: give either a schema or these options."
        )
    if schema is None:
        schema = schema_of(opened, x=x, utility=utility, private=private, id=id, domain=domain)
    sources = opened.chosen(part)
    rows = rows_within(opened, sources, schema, limit, seed, required=require_labels)
    data = read(opened, sources, schema, required=require_labels, rows=rows)
    return with_numbers(data) if require_labels else data


def schema_of(
    opened: LocatedSource,
    *,
    x: Names = None,
    utility: Names = None,
    private: Names = None,
    id: str | None = None,
    domain: DomainName = None,
) -> Schema:
    """Return the schema of an opened data set, as declared by a domain or else learned from its training part."""
    reference = opened.reference
    roles = resolve(reference, opened.entry, x=x, utility=utility, private=private, id=id)
    declared = domain_for(domain, opened.entry, reference)
    if declared is not None:
        return declared_schema(reference, roles, opened.entry, declared)
    return infer(reference, roles, opened.entry)


def domain_draft(
    source: SourceName, *, x: Names = None, utility: Names = None, private: Names = None, id: str | None = None
) -> str:
    """Draft a domain file for the owner of the records to correct.

    Args:
        source, x, utility, private, id: As for ``load``.

    Returns:
        The domain as TOML: read from the records and marked as a draft, unless the named set brings its own.

    Raises:
        UsageError, DataError: As for ``load``.
    """
    opened = open_data(source)
    return draft(schema_of(opened, x=x, utility=utility, private=private, id=id), opened.name)


def read(
    opened: LocatedSource,
    sources: Sequence[Source],
    schema: Schema,
    *,
    required: bool,
    rows: Sequence[npt.NDArray[np.intp]] | None = None,
) -> Dataset:
    """Read the records of these sources, one after the other, into one ``Dataset``; ``rows`` chooses in each source."""
    return join(list(pieces_of(opened, sources, schema, required=required, rows=rows)))


def with_numbers(data: Dataset) -> Dataset:
    """The records that have a number wherever a label is one; the others are counted."""
    whole = data.complete
    if whole.all():
        return data
    if not whole.any():
        raise DataError(f"{data.name}: no record has a number in {', '.join(data.schema.numbers)}: use another label.")
    return replace(data.take(np.flatnonzero(whole)), left_out=int((~whole).sum()))


def pieces_of(
    opened: LocatedSource,
    sources: Sequence[Source],
    schema: Schema,
    *,
    required: bool,
    rows: Sequence[npt.NDArray[np.intp]] | None = None,
) -> Iterator[Dataset]:
    """The same records, at most ``BATCH_ROWS`` at a time, and fewer where they are large."""
    some = False
    for place, one in enumerate(sources):
        roles = of_schema(one, schema, opened.entry, required=required)
        for piece in _pieces(opened, one, roles, schema, None if rows is None else rows[place]):
            some = True
            yield piece
    if not some:
        raise Place(sources[0].label).fault("contains no records", "provide a file with at least one row")


def rows_within(
    opened: LocatedSource,
    sources: Sequence[Source],
    schema: Schema,
    limit: int | None,
    seed: int,
    *,
    required: bool = True,
) -> list[npt.NDArray[np.intp]] | None:
    """Return the rows of each source that ``limit`` keeps, or None for all."""
    if limit is None:
        return None
    if limit < 1:
        raise UsageError(f"limit must be at least 1, got {limit}.")
    plans = [(one, of_schema(one, schema, opened.entry, required=required)) for one in sources]
    return within_limit(opened, plans, limit, seed)


def join(pieces: Sequence[Dataset]) -> Dataset:
    """Concatenate data sets of one schema, keeping only the labels that every piece has."""
    first = pieces[0]
    return Dataset(
        x=np.concatenate([piece.x for piece in pieces]),
        schema=first.schema,
        utility=_joined([piece.utility for piece in pieces]),
        private=_joined([piece.private for piece in pieces]),
        ids=np.concatenate([piece.ids for piece in pieces]),
        name=first.name,
        named=first.named,
        contents=joined_hashes(*pieces),
    )


def _joined(labels: Sequence[Mapping[str, IntArray]]) -> dict[str, IntArray]:
    shared = [name for name in labels[0] if all(name in one for one in labels)]
    return {name: np.concatenate([one[name] for one in labels]) for name in shared}


def _pieces(
    opened: LocatedSource, source: Source, roles: Roles, schema: Schema, rows: npt.NDArray[np.intp] | None
) -> Iterator[Dataset]:
    import pyarrow as pa

    def encoded(batch: Any, first_row: int) -> Dataset:
        return encode_batch(source, batch, first_row, schema, roles, name=opened.name, side=opened.side)

    most = max(1, min(BATCH_ROWS, _BATCH_BYTES // (4 * schema.size)))
    for first_row, batch in source.batches(roles.columns(), most):
        if rows is None:
            if batch.num_rows:
                yield encoded(batch, first_row)
            continue
        inside = rows[(rows >= first_row) & (rows < first_row + batch.num_rows)] - first_row
        if not len(inside):
            continue
        try:
            piece = encoded(batch.take(pa.array(inside)), first_row)
        except DataError:
            # The message counts rows within the subset, so encode row by row to raise with the row in the file.
            for place in inside:
                encoded(batch.slice(place, 1), first_row + int(place))
            raise
        if roles.id is None:
            piece = replace(piece, ids=ids_of(source, batch, first_row, None)[inside])
        yield piece
