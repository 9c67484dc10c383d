"""The payload of every row of a release that somebody else made, as numbers; nothing of it is cut off or guessed.

Every column counts but the id. A column of vectors or arrays is taken as it is; pictures and recordings are decoded;
other columns are numbers or one-hot classes. Numbers are in the records' units where payload and record have the same
form, else with mean 0 and deviation 1 over the release: what an attacker would do first, and can undo.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray
from sfumato.core.schema import Column, Schema
from sfumato.data.column_roles import Roles
from sfumato.data.encoding.list_cells import check_finite, dense, is_encoded, is_list, wrong_shape
from sfumato.data.encoding.records import encode_records, ids_of
from sfumato.data.encoding.tables import as_text
from sfumato.data.file_errors import Place
from sfumato.data.readers.locate import LocatedSource
from sfumato.data.readers.media_folder import FolderSource
from sfumato.data.readers.source import Source
from sfumato.data.schema_inference import infer

_ROWS = 8192
_FILE = "file"
_BYTES = 2.0
"""Pictures of real numbers lie about [0, 1], those of bytes reach 255."""
_NUMERIC_SHARE = 1e-9
"""A deviation below this part of the largest number is rounding."""


@dataclass(frozen=True)
class PayloadTable:
    """A release as it was read.

    payload          (N, …)
    ids              the subject of each row; None if the release does not name them
    labels           the text of columns that the records have as utility labels
    in_record_units  whether the payload has the records' form and units
    columns          the form of columns of numbers and classes; empty where the payload has none
    """

    payload: FloatArray
    ids: npt.NDArray[Any] | None
    labels: dict[str, npt.NDArray[Any]]
    in_record_units: bool
    columns: tuple[Column, ...] = ()


def read_payloads(
    opened: LocatedSource,
    records: Schema,
    *,
    id: str | None,
    labels: Sequence[str],
    form: Sequence[Column] = (),
) -> PayloadTable:
    """Read a release whose rows belong to records of the schema ``records``.

    Args:
        opened: The release.
        records: What the records look like.
        id: The column that names the subject, which the release may have.
        labels: Columns that the records have as utility labels: in the release they are labels that leave.
        form: The columns of an earlier release by the same pipeline.

    Raises:
        DataError: A payload is missing, has another shape than the others, or holds NaN or infinity.
    """
    parts = [_read(source, opened.side, records, id, labels, form) for source in opened.parts.values()]
    first = parts[0]
    if any(part.payload.shape[1:] != first.payload.shape[1:] for part in parts):
        shapes = " and ".join(str(part.payload.shape[1:]) for part in parts)
        raise Place(opened.name).fault(f"its parts hold payloads of shapes {shapes}", "give payloads of one shape")
    return replace(
        first,
        payload=np.concatenate([part.payload for part in parts]),
        ids=None if first.ids is None else np.concatenate([part.ids for part in parts if part.ids is not None]),
        labels={name: np.concatenate([part.labels[name] for part in parts]) for name in first.labels},
    )


def centred(payload: FloatArray, by: FloatArray) -> FloatArray:
    """Moved and scaled as ``by`` gets mean 0 and deviation 1: each number of a vector by itself, arrays as a whole."""
    axis = 0 if by.ndim == 2 else None
    values = by.astype(np.float64)
    mean, deviation = values.mean(axis=axis), values.std(axis=axis)
    small = _NUMERIC_SHARE * max(1.0, float(np.abs(values).max(initial=0.0)))
    return np.asarray((payload - mean) / np.where(deviation > small, deviation, 1.0), dtype=np.float32)


def _read(
    source: Source, side: int | None, records: Schema, id: str | None, labels: Sequence[str], form: Sequence[Column]
) -> PayloadTable:
    named = id if id in source.columns else None
    beside = [name for name in labels if name in source.columns]
    left = {named, *beside} | ({_FILE} if isinstance(source, FolderSource) else set())
    columns = [name for name in source.columns if name not in left]
    if not columns:
        raise Place(source.label).fault("has no column of payloads", "give vectors, pictures or columns of numbers")
    fields = source.schema
    whole = [name for name in columns if is_list(fields.field(name).type) or is_encoded(fields.field(name).type)]
    rest = tuple(name for name in columns if name not in whole)
    pieces = [_whole(source, side, name, records) for name in whole]
    shape: tuple[Column, ...] = ()
    if rest:
        cells, alike, shape = _cells(source, rest, records, form)
        pieces.append((cells, alike))
    ids, kept = _beside(source, named, beside)
    if len(pieces) == 1:
        payload, same = pieces[0]
    else:
        payload, same = np.concatenate([piece.reshape(len(piece), -1) for piece, _ in pieces], axis=1), False
    if len(payload) == 0:
        raise Place(source.label).fault("holds no payloads", "give at least one row")
    return PayloadTable(payload, ids, kept, same, shape)


def _whole(source: Source, side: int | None, column: str, records: Schema) -> tuple[FloatArray, bool]:
    """One column of arrays, pictures or recordings; whether it is in the records' form and units."""
    if is_encoded(source.schema.field(column).type):
        roles = Roles((column,), (), ())
        own = infer(source, roles)
        alike = own.kind == records.kind and own.shape == records.shape
        schema = replace(records, x_columns=(column,)) if alike else own
        found = [
            encode_records(source, batch, first, schema, side if alike else None)
            for first, batch in source.batches([column], _ROWS)
            if batch.num_rows
        ]
        return np.concatenate(found), alike
    parts: list[npt.NDArray[Any]] = []
    for first, batch in source.batches([column], _ROWS):
        if batch.num_rows == 0:
            continue
        where = Place(source.label, column, first)
        cells = dense(batch.column(column), where, source.cell_shapes.get(column))
        if parts and cells.shape[1:] != parts[0].shape[1:]:
            raise wrong_shape(cells.shape[1:], parts[0].shape[1:], where)
        check_finite(cells, where)
        parts.append(cells)
    values = np.concatenate(parts) if parts else np.empty((0, 1))
    scaled = _in_units(values, records)
    return (values.astype(np.float32), False) if scaled is None else (scaled, True)


def _in_units(values: npt.NDArray[Any], records: Schema) -> FloatArray | None:
    """Raw arrays of the records' shape in the records' units, or None."""
    shape = values.shape[1:]
    if records.kind == "image":
        channels_last = len(shape) == 3 and (shape[2], *shape[:2]) == records.shape
        if not channels_last and int(np.prod(shape)) != int(np.prod(records.shape)):
            return None
        pictures = np.moveaxis(values, 3, 1) if channels_last else values.reshape(len(values), *records.shape)
        scale = 255.0 if values.dtype.kind in "iu" or np.median(np.abs(values)) > _BYTES else 1.0
        return np.asarray(pictures / scale, dtype=np.float32)
    numeric = records.kind == "table" and all(column.width == 1 for column in records.columns)
    if shape != records.shape or not (numeric or records.kind == "signal"):
        return None
    ranges = [(one.low, one.high) for one in records.columns] if numeric else list(records.ranges)
    low, high = np.asarray(ranges, dtype=np.float64).T
    span = np.where(high > low, high - low, 1.0)
    if not numeric:
        low, span = low[:, None], span[:, None]
    return np.asarray((values - low) / span, dtype=np.float32)


def _cells(
    source: Source, names: tuple[str, ...], records: Schema, form: Sequence[Column]
) -> tuple[FloatArray, bool, tuple[Column, ...]]:
    """Columns of numbers and classes, whether they are the records' columns in the records' units, and their form."""
    own = infer(source, Roles(names, (), (), named=True), like=form or records.columns)
    known = {one.name: one for one in form or records.columns}
    columns = tuple(_like(one, known.get(one.name)) for one in own.columns)
    own = replace(own, columns=columns, shape=(sum(one.width for one in columns),))
    theirs = {one.name: one for one in records.columns}
    alike = list(theirs) == [one.name for one in columns] and all(_same_form(one, theirs[one.name]) for one in columns)
    batches = source.batches(list(names), _ROWS)
    encoded = np.concatenate([encode_records(source, batch, first, own) for first, batch in batches if batch.num_rows])
    return _unscaled(encoded, columns, records.columns if alike else None), alike, columns


def _like(own: Column, known: Column | None) -> Column:
    """The release's column with the classes that are known, where it has no others, and a place for what is missing."""
    if known is None or own.kind != known.kind:
        return own
    classes = known.categories if set(own.categories) <= set(known.categories) else own.categories
    return replace(own, categories=classes, nullable=own.nullable or known.nullable)


def _same_form(own: Column, theirs: Column) -> bool:
    return own.kind == theirs.kind and own.width == theirs.width and own.categories == theirs.categories


def _unscaled(encoded: FloatArray, own: Sequence[Column], theirs: Sequence[Column] | None) -> FloatArray:
    """Numbers as they are in the release or in the records' units: beyond [0, 1] where the release goes on."""
    moved, at = encoded.astype(np.float64), 0
    for place, one in enumerate(own):
        if one.kind == "numeric":
            low, high = (0.0, 1.0) if theirs is None else (theirs[place].low, theirs[place].high)
            raw = one.low + moved[:, at] * (one.high - one.low)
            given = (raw - low) / (high - low if high > low else 1.0)
            moved[:, at] = np.where(moved[:, at + 1] > 0.5, 0.0, given) if one.nullable else given
        at += one.width
    return np.asarray(moved, dtype=np.float32)


def _beside(
    source: Source, id: str | None, labels: Sequence[str]
) -> tuple[npt.NDArray[Any] | None, dict[str, npt.NDArray[Any]]]:
    """The ids and the labels of each row, as text."""
    wanted = [*([id] if id else []), *labels]
    if not wanted:
        return None, {}
    ids: list[npt.NDArray[Any]] = []
    found: dict[str, list[str]] = {name: [] for name in labels}
    for first, batch in source.batches(wanted, _ROWS):
        if id is not None:
            ids.append(ids_of(source, batch, first, id))
        for name in labels:
            found[name] += as_text(batch.column(name)).to_pylist()
    told = {name: np.array([text if text is not None else "" for text in texts]) for name, texts in found.items()}
    return (np.concatenate(ids) if ids else None), told
