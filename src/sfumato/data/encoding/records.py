"""Encoding a batch of records as a ``Dataset``, exactly as the schema prescribes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.schema import Schema
from sfumato.data.column_roles import Roles
from sfumato.data.encoding import images, signals
from sfumato.data.encoding.audio import log_mel, read_wav
from sfumato.data.encoding.list_cells import check_finite, dense, first_null, is_encoded, is_list
from sfumato.data.encoding.raw_contents import raw_contents
from sfumato.data.encoding.tables import Unseen, as_text, check_rules, check_sums, encode_table, encode_vectors
from sfumato.data.file_errors import FaultHere, Place
from sfumato.data.numeric_labels import encode_label
from sfumato.data.readers.source import Source


def encode_batch(
    source: Source,
    batch: Any,
    first_row: int,
    schema: Schema,
    roles: Roles,
    *,
    name: str,
    side: int | None = None,
    unseen: Unseen | None = None,
) -> Dataset:
    """Encode one batch with the labels and ids that ``roles`` names."""
    codes = {
        label.name: encode_label(label, batch.column(label.column), schema, source.label, first_row)
        for label in roles.labels
    }
    return Dataset(
        x=encode_records(source, batch, first_row, schema, side, unseen),
        schema=schema,
        utility={label.name: codes[label.name] for label in roles.utility},
        private={label.name: codes[label.name] for label in roles.private},
        ids=ids_of(source, batch, first_row, roles.id),
        name=name,
        named=roles.id is not None,
        contents=raw_contents(batch, schema),
    )


def encode_records(
    source: Source,
    batch: Any,
    first_row: int,
    schema: Schema,
    side: int | None = None,
    unseen: Unseen | None = None,
) -> FloatArray:
    """Encode the records alone as float32 ``(rows, *shape)`` in [0, 1]."""
    column = schema.x_columns[0]
    array = batch.column(column)
    shape = source.cell_shapes.get(column)
    where = Place(source.label, column, first_row)
    if schema.kind == "image":
        _expect(is_encoded(array.type) or is_list(array.type), "images", where)
        return images.encode(array, schema.shape, where, side=side, cell_shape=shape)
    if schema.kind == "audio":
        _expect(is_encoded(array.type), "recordings", where)
        return _encode_audio(array, schema, where)
    if schema.kind == "signal":
        _expect(is_list(array.type), "signals", where)
        windows = signals.as_windows(dense(array, where, shape), schema.shape, where)
        if schema.strict:
            signals.check_inside(windows, schema.ranges, where)
        return signals.scale(windows, schema.ranges)
    if is_list(array.type):
        cells = dense(array, where, shape)
        check_finite(cells, where)
        return encode_vectors(cells, schema.columns, where)
    check_sums(batch, schema, source.label, first_row)
    encoded = encode_table(batch, schema.columns, source.label, first_row, unseen)
    check_rules(batch, encoded, schema, source.label, first_row)
    return encoded


def ids_of(source: Source, batch: Any, first_row: int, column: str | None) -> npt.NDArray[Any]:
    """Return the subject of each record: its id, or else file and row."""
    if column is None:
        rows = np.arange(first_row, first_row + batch.num_rows)
        return np.char.add(f"{source.stem}:", rows.astype(f"U{len(str(first_row + batch.num_rows))}"))
    text = as_text(batch.column(column))
    missing = first_null(text)
    if missing is not None:
        where = Place(source.label, column, first_row + missing)
        raise where.fault("the id is missing", "fill it in or remove the row")
    return np.array(text.to_pylist(), dtype=np.str_)


def _encode_audio(array: Any, schema: Schema, where: Place) -> FloatArray:
    frame = schema.audio
    if frame is None:
        what = "the schema has no audio settings for these recordings"
        raise Place(where.file).fault(what, "fit the mechanism again")
    out = np.empty((len(array), *schema.shape), dtype=np.float32)
    for place, cell in enumerate(array):
        here = where.below(place)
        try:
            samples, rate = read_wav(images.cell_bytes(cell, here), frame.seconds, here)
        except FaultHere as error:
            raise images.by_name(error, cell) from None
        out[place] = log_mel(samples, rate, frame)
    return out


def _expect(fits: bool, what: str, where: Place) -> None:
    if not fits:
        column = replace(where, row=None)
        raise column.fault(f"contains no {what}, unlike the training data", "provide a file of the same kind")
