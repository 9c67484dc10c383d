"""Schema inference: kind and shape come from the first record; ranges, categories and classes from all records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.core.schema import AudioFrame, Column, Kind, Schema
from sfumato.data.column_roles import Roles
from sfumato.data.encoding import signals
from sfumato.data.encoding.audio import read_wav
from sfumato.data.encoding.images import by_name, cell_bytes, decode
from sfumato.data.encoding.list_cells import check_finite, dense, is_encoded, is_list, wrong_shape
from sfumato.data.file_errors import FaultHere, Place
from sfumato.data.limits import MAX_RECORD_NUMBERS
from sfumato.data.numeric_labels import fit_of
from sfumato.data.readers.source import Source
from sfumato.data.registry import Entry
from sfumato.data.table_inference import TableFit

FIT_ROWS = 8192
AUDIO_SECONDS, AUDIO_MELS, AUDIO_FRAMES = 1.0, 32, 32


def infer(source: Source, roles: Roles, entry: Entry | None = None, like: Sequence[Column] = ()) -> Schema:
    """Learn the schema from a source (the training part, if there is one); columns in ``like`` are read like these."""
    schema = shape_of(source, roles, entry)
    fits = {label.name: fit_of(label, source, entry) for label in roles.labels}
    table = vector = ranges = None
    columns = {label.column for label in roles.labels}
    if schema.kind == "table" and not schema.columns:
        named = roles.named or entry is not None
        table = TableFit(roles.x, source.schema, source.untyped, source.label, named=named, like=like)
        columns.update(roles.x)
    elif schema.kind in ("table", "signal"):
        columns.update(roles.x)
    for first_row, batch in source.batches(sorted(columns), FIT_ROWS) if columns else ():
        for label in roles.labels:
            fits[label.name].add(first_row, batch.column(label.column))
        if batch.num_rows == 0:
            continue
        if table is not None:
            table.add(first_row, batch)
        elif schema.kind in ("table", "signal"):
            name = roles.x[0]
            where = Place(source.label, name, first_row)
            values = dense(batch.column(name), where, source.cell_shapes.get(name))
            if schema.kind == "signal":
                ranges = signals.widen(ranges, signals.as_windows(values, schema.shape, where))
            else:
                _check_length(values, schema, where)
                vector = signals.widen(vector, values[:, :, None])
    if table is not None:
        learned, left_out = table.columns(), table.left_out()
        kept = tuple(name for name in schema.x_columns if name not in left_out)
        width = sum(column.width for column in learned)
        schema = replace(schema, columns=learned, shape=(width,), x_columns=kept, left_out=left_out)
    if vector is not None:
        schema = replace(
            schema,
            columns=tuple(
                replace(column, low=float(low), high=float(high))
                for column, (low, high) in zip(schema.columns, vector, strict=True)
            ),
        )
    if ranges is not None:
        schema = replace(schema, ranges=tuple((float(low), float(high)) for low, high in ranges))
    return replace(
        schema,
        utility={label.name: fits[label.name].classes() for label in roles.utility},
        private={label.name: fits[label.name].classes() for label in roles.private},
        sources={label.name: label.text() for label in roles.labels if label.text() != label.name},
        numbers={name: scale for name, fit in fits.items() if (scale := fit.scale()) is not None},
    )


def shape_of(source: Source, roles: Roles, entry: Entry | None = None) -> Schema:
    """Return a schema with kind and shape only, from the first record. Ranges and classes stay empty."""
    empty = Schema("table", (0,), x_columns=roles.x, id_column=roles.id)
    column = roles.x[0]
    arrow_type = source.schema.field(column).type
    first = next((batch for _, batch in source.batches(roles.x, 1) if batch.num_rows), None)
    if first is None:
        raise Place(source.label).fault("contains no records", "provide a file with at least one row")
    where = Place(source.label, column, 0)
    if is_encoded(arrow_type):
        data = cell_bytes(first.column(column)[0], where)
        if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
            _, rate = read_wav(data, AUDIO_SECONDS, where)
            frame = AudioFrame(rate, AUDIO_SECONDS, AUDIO_MELS, AUDIO_FRAMES)
            return replace(empty, kind="audio", shape=(1, AUDIO_MELS, AUDIO_FRAMES), audio=frame)
        side = entry.side if entry else None
        try:
            image = decode(data, where, channels=3 if side else None, side=side)
        except FaultHere as error:
            raise by_name(error, first.column(column)[0]) from None
        return replace(empty, kind="image", shape=image.shape)
    if first.num_columns > 1 or not is_list(arrow_type):
        return empty
    cells = dense(first.column(column), where, source.cell_shapes.get(column))
    kind, shape = _kind_of_cell(cells, roles.shape, Place(source.label, column))
    if math.prod(shape) > MAX_RECORD_NUMBERS or 0 in shape:
        remedy = f"store between 1 and {MAX_RECORD_NUMBERS:,} numbers per record"
        raise Place(source.label, column).fault(f"records of shape {shape} are not supported", remedy)
    if kind == "table":
        places = tuple(Column(f"{column}[{place}]", "numeric") for place in range(shape[0]))
        return replace(empty, shape=shape, columns=places)
    return replace(empty, kind=kind, shape=shape)


def _kind_of_cell(cells: Any, given: tuple[int, ...] | None, where: Place) -> tuple[Kind, tuple[int, ...]]:
    """Decide what a cell of numbers is: whole numbers may be pixels, else the number of axes decides."""
    cell: tuple[int, ...] = cells.shape[1:]
    if given is not None:
        if math.prod(given) != math.prod(cell) or len(given) > 3:
            what = f"each record has {math.prod(cell)} numbers, which do not fill the shape {given}"
            raise where.fault(what, "correct the shape given with x")
        kinds: dict[int, Kind] = {1: "table", 2: "signal", 3: "image"}
        return kinds[len(given)], given
    whole = cells.dtype.kind in "iub"
    if len(cell) == 1:
        side = math.isqrt(cell[0])
        square = side * side == cell[0] and (cells.dtype == np.uint8 or side >= 8)
        if whole and square and cells.min(initial=0) >= 0 and cells.max(initial=0) <= 255:
            return "image", (1, side, side)
        return "table", cell
    if len(cell) == 2:
        return ("image", (1, *cell)) if cells.dtype == np.uint8 else ("signal", cell)
    if len(cell) == 3 and cell[2] in (1, 3):
        return "image", (cell[2], cell[0], cell[1])
    if len(cell) == 3 and cell[0] in (1, 3):
        return "image", cell
    what = f"records of shape {cell} are neither images, signals nor vectors"
    raise where.fault(what, "store images as H×W, H×W×3 or 3×H×W, signals as channels × samples")


def _check_length(values: Any, schema: Schema, where: Place) -> None:
    if values.shape[1:] != schema.shape:
        raise wrong_shape(values.shape[1:], schema.shape, where)
    check_finite(values, where)
