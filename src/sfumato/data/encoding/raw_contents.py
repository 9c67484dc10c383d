"""Hashes of the raw values of records, before ranges and categories of a schema touch them."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.origin import HASH_BYTES, Hashes, hash_rows
from sfumato.core.schema import Column, Schema
from sfumato.data.encoding.dates import as_dates
from sfumato.data.encoding.images import cell_bytes
from sfumato.data.encoding.list_cells import dense, is_list
from sfumato.data.encoding.tables import as_numbers, as_text, without_absent
from sfumato.data.file_errors import Place

_TEXT_BYTES = 8


def raw_contents(batch: Any, schema: Schema) -> Hashes | None:
    """Return a hash of each record's raw values, the same in every file format; None where ``x`` is as raw.

    A table's columns are taken by name, in sorted order, so unused columns and their order do not matter. Pictures are
    only divided by 255, whatever the schema, so ``x`` itself tells them apart.
    """
    if schema.kind == "image" or batch.num_rows == 0:
        return None
    array = batch.column(schema.x_columns[0])
    if schema.kind == "audio":
        return cell_hashes(array, Place("", schema.x_columns[0], 0))
    if is_list(array.type):
        return hash_rows(dense(array, Place("", schema.x_columns[0], 0)).astype(np.float32))
    columns = sorted((one for one in schema.columns if not one.cycle), key=lambda column: column.name)
    return hash_rows(np.concatenate([_column_bytes(batch.column(one.name), one) for one in columns], axis=1))


def cell_hashes(array: Any, where: Place) -> Hashes:
    """(N, 16): a hash of the bytes of each encoded cell; ``where`` is the first one's place."""
    cells = [
        hashlib.blake2b(cell_bytes(cell, where.below(row)), digest_size=HASH_BYTES).digest()
        for row, cell in enumerate(array)
    ]
    return np.frombuffer(b"".join(cells), dtype=np.uint8).reshape(-1, HASH_BYTES)


def named_bytes(name: str, values: Hashes) -> Hashes:
    """(N, 16) bytes: a hash of the column's name before the 8 bytes of each value."""
    head = np.frombuffer(hashlib.blake2b(name.encode(), digest_size=8).digest(), dtype=np.uint8)
    return np.concatenate([np.tile(head, (len(values), 1)), values], axis=1)


def _column_bytes(array: Any, column: Column) -> Hashes:
    """(N, 16) bytes: the column's name, and the number or a hash of the text; a missing value is a value of its own."""
    array = without_absent(array, column)
    if column.form:
        numbers: npt.NDArray[np.float64] | None = as_dates(array, column.form)[0]
    else:
        numbers = as_numbers(_as_written(array)) if column.kind == "numeric" else None
    if numbers is not None:
        plain = np.where(np.isnan(numbers), np.nan, numbers + 0.0)  # one NaN, one zero
        values = np.ascontiguousarray(plain).view(np.uint8).reshape(len(plain), 8)
    else:
        values = text_bytes(as_text(array))
    return named_bytes(column.name, values)


def _as_written(array: Any) -> Any:
    """Short floats as the decimals that they were written as: 0.1 in 32 bits is the 0.1 of a file of text."""
    import pyarrow as pa
    import pyarrow.types as pt

    return array.cast(pa.string()) if pt.is_float32(array.type) or pt.is_float16(array.type) else array


def text_bytes(text: Any) -> Hashes:
    """(N, 8) bytes: a hash of each text; a missing one is a value of its own."""
    codes = text.dictionary_encode()
    words = [hashlib.blake2b(word.encode(), digest_size=_TEXT_BYTES).digest() for word in codes.dictionary.to_pylist()]
    table = np.frombuffer(b"".join([*words, bytes(_TEXT_BYTES)]), dtype=np.uint8).reshape(-1, _TEXT_BYTES)
    places = codes.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)  # the last row: missing
    return np.asarray(table[places])
