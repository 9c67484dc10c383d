"""Encoding a batch of records as a ``Dataset``, exactly as the schema prescribes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.schema import Schema
from sfumato.data.column_roles import Roles
from sfumato.data.encoding import images, signals
from sfumato.data.encoding.audio import log_mel, read_wav
from sfumato.data.encoding.list_cells import check_finite, dense, is_encoded, is_list
from sfumato.data.encoding.tables import as_text, check_sums, encode_table, encode_vectors
from sfumato.data.file_errors import fault
from sfumato.data.labels import encode_labels
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
) -> Dataset:
    """Encode one batch with the labels and ids that ``roles`` names."""
    codes = {
        label.name: encode_labels(
            label, batch.column(label.column), schema.classes(label.name), source.label, first_row
        )
        for label in roles.labels
    }
    return Dataset(
        x=encode_records(source, batch, first_row, schema, side),
        schema=schema,
        utility={label.name: codes[label.name] for label in roles.utility},
        private={label.name: codes[label.name] for label in roles.private},
        ids=ids_of(source, batch, first_row, roles.id),
        name=name,
    )


def encode_records(source: Source, batch: Any, first_row: int, schema: Schema, side: int | None = None) -> FloatArray:
    """Encode the records alone as float32 ``(rows, *shape)`` in [0, 1]."""
    column = schema.x_columns[0]
    array = batch.column(column)
    shape = source.cell_shapes.get(column)
    if schema.kind == "image":
        _expect(source, column, is_encoded(array.type) or is_list(array.type), "images")
        return images.encode(array, schema.shape, source.label, column, first_row, side=side, cell_shape=shape)
    if schema.kind == "audio":
        _expect(source, column, is_encoded(array.type), "recordings")
        return _encode_audio(array, schema, source.label, column, first_row)
    if schema.kind == "signal":
        _expect(source, column, is_list(array.type), "signals")
        cells = dense(array, source.label, column, first_row, shape)
        windows = signals.as_windows(cells, schema.shape, source.label, column, first_row)
        if schema.strict:
            signals.check_inside(windows, schema.ranges, source.label, column, first_row)
        return signals.scale(windows, schema.ranges)
    if is_list(array.type):
        cells = dense(array, source.label, column, first_row, shape)
        check_finite(cells, source.label, column, first_row)
        return encode_vectors(cells, schema.columns, source.label, column, first_row)
    check_sums(batch, schema, source.label, first_row)
    return encode_table(batch, schema.columns, source.label, first_row)


def ids_of(source: Source, batch: Any, first_row: int, column: str | None) -> npt.NDArray[Any]:
    """Return the subject of each record: its id, or else file and row."""
    if column is None:
        rows = np.arange(first_row, first_row + batch.num_rows)
        return np.char.add(f"{source.stem}:", rows.astype(f"U{len(str(first_row + batch.num_rows))}"))
    text = as_text(batch.column(column))
    if text.null_count:
        place = int(np.argmax(text.is_null().to_numpy(zero_copy_only=False)))
        raise fault(
            source.label,
            "the id is missing",
            column=column,
            row=first_row + place,
            remedy="fill it in or remove the row",
        )
    return np.array(text.to_pylist(), dtype=np.str_)


def _encode_audio(array: Any, schema: Schema, file: str, column: str, first_row: int) -> FloatArray:
    frame = schema.audio
    if frame is None:
        raise fault(file, "the schema has no audio settings for these recordings", remedy="fit the mechanism again")
    out = np.empty((len(array), *schema.shape), dtype=np.float32)
    for place, cell in enumerate(array):
        row = first_row + place
        data = images.cell_bytes(cell, file, column, row)
        samples, rate = read_wav(data, frame.seconds, file, column, row)
        out[place] = log_mel(samples, rate, frame)
    return out


def _expect(source: Source, column: str, fits: bool, what: str) -> None:
    if not fits:
        raise fault(
            source.label,
            f"contains no {what}, unlike the training data",
            column=column,
            remedy="provide a file of the same kind",
        )
