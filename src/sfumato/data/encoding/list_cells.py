"""Arrow list cells as NumPy arrays, without a copy where the buffers allow it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.errors import DataError
from sfumato.data.file_errors import Place

AnyArray = npt.NDArray[Any]


def is_list(arrow_type: Any) -> bool:
    """Return whether cells of this type are lists."""
    import pyarrow.types as pt

    return bool(pt.is_list(arrow_type) or pt.is_large_list(arrow_type) or pt.is_fixed_size_list(arrow_type))


def is_encoded(arrow_type: Any) -> bool:
    """Return whether cells are encoded files: bytes, or a struct with a ``bytes`` field."""
    import pyarrow.types as pt

    if pt.is_struct(arrow_type):
        return int(arrow_type.get_field_index("bytes")) >= 0
    return bool(pt.is_binary(arrow_type) or pt.is_large_binary(arrow_type))


def first_null(array: Any) -> int | None:
    """Return the position of the first null, or None."""
    if not array.null_count:
        return None
    return int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))


def dense(array: Any, where: Place, cell_shape: tuple[int, ...] | None = None) -> AnyArray:
    """Convert list cells of equal length to an array ``(rows, *cell)``. Ragged or missing cells raise.

    ``where`` is the place of the first cell.
    """
    import pyarrow.types as pt

    rows = len(array)
    sides: list[int] = []
    per_row = 1
    while is_list(array.type):
        missing = first_null(array)
        if missing is not None:
            raise where.below(missing // per_row).fault("the record is missing", "remove the row")
        if pt.is_fixed_size_list(array.type):
            side = int(array.type.list_size)
        else:
            lengths = np.diff(array.offsets.to_numpy())
            side = int(lengths[0]) if len(lengths) else 0
            odd = np.flatnonzero(lengths != side)
            if len(odd):
                what = f"the record has {lengths[odd[0]]} values, others have {side}"
                raise where.below(int(odd[0]) // per_row).fault(what, "make all records the same length")
        sides.append(side)
        per_row *= side
        array = array.flatten()
    missing = first_null(array)
    if missing is not None:
        row = where.below(missing // max(per_row, 1))
        raise row.fault("the record has a missing value", "fill it in or remove the row")
    if not (pt.is_integer(array.type) or pt.is_floating(array.type) or pt.is_boolean(array.type)):
        raise replace(where, row=None).fault(f"contains lists of {array.type}", "store lists of numbers")
    values: AnyArray = array.to_numpy(zero_copy_only=False)
    return values.reshape(rows, *(cell_shape or tuple(sides)))


def check_finite(values: AnyArray, where: Place) -> None:
    """Raise at the first record with NaN or infinity; ``where`` is the place of the first record."""
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values).reshape(len(values), -1).all(axis=1)))
        raise where.below(row).fault("the record holds NaN or infinity", "replace the value or remove the row")


def wrong_shape(found: tuple[int, ...], expected: tuple[int, ...], where: Place) -> DataError:
    """Return the error for records of another shape than the rest."""
    return where.fault(f"a record has shape {found}, expected {expected}", "make all records the same length")
