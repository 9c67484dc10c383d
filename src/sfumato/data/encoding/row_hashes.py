"""Hashes that tell the rows of a file apart whatever labels are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.core.origin import Hashes, hash_rows
from sfumato.data.column_roles import Roles
from sfumato.data.encoding.list_cells import dense, is_encoded, is_list
from sfumato.data.encoding.raw_contents import cell_hashes, named_bytes, text_bytes
from sfumato.data.encoding.tables import as_text
from sfumato.data.file_errors import Place
from sfumato.data.readers.source import Source


def identifying_columns(source: Source, roles: Roles) -> list[str]:
    """Return the column of whole records; for a table all plain columns, in sorted order, labels and unused included.

    What ``x`` is changes with the labels asked for, so ``x`` alone would give another hash for other labels.
    """
    if _is_record(source.schema.field(roles.x[0]).type):
        return [roles.x[0]]
    return sorted(name for name in source.columns if not _is_nested(source.schema.field(name).type))


def row_hashes(source: Source, batch: Any, first_row: int, roles: Roles) -> Hashes:
    """Return a hash of each row of a batch of ``identifying_columns``, (N, 16), from that row alone."""
    names = identifying_columns(source, roles)
    array, where = batch.column(names[0]), Place(source.label, names[0], first_row)
    if is_list(array.type):
        return hash_rows(dense(array, where, source.cell_shapes.get(names[0])).astype(np.float32))
    if is_encoded(array.type):
        return cell_hashes(array, where)
    texts = {name: text_bytes(as_text(_numbered(batch.column(name)))) for name in names}
    return hash_rows(np.concatenate([named_bytes(name, values) for name, values in texts.items()], axis=1))


def _numbered(array: Any) -> Any:
    """Dates and times in nanoseconds, whatever the column's unit, modulo 2⁶⁴: their text needs to know time zones."""
    import pyarrow as pa
    import pyarrow.types as pt

    if not pt.is_temporal(array.type):
        return array
    whole = array.view(pa.int64() if array.type.bit_width == 64 else pa.int32())
    steps = whole.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return pa.array(steps * np.int64(_nanoseconds(array.type)), mask=~whole.is_valid().to_numpy(zero_copy_only=False))


def _nanoseconds(arrow_type: Any) -> int:
    """How long one step of a date or time is."""
    import pyarrow.types as pt

    if pt.is_date32(arrow_type):
        return 86_400 * 10**9
    return {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}["ms" if pt.is_date64(arrow_type) else arrow_type.unit]


def _is_record(arrow_type: Any) -> bool:
    return is_list(arrow_type) or is_encoded(arrow_type)


def _is_nested(arrow_type: Any) -> bool:
    import pyarrow.types as pt

    return bool(pt.is_nested(arrow_type) or is_encoded(arrow_type) or pt.is_interval(arrow_type))
