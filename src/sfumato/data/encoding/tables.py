"""Table rows as vectors in [0, 1], and back.

Numeric columns are scaled by their range and categorical ones are one-hot. Null, empty text, ``?`` and NaN count as
missing. ``TableFit`` learns the columns from training records in one pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray
from sfumato.core.errors import DataError
from sfumato.core.schema import Column, Schema
from sfumato.data.encoding.list_cells import wrong_shape
from sfumato.data.file_errors import Place
from sfumato.data.limits import MAX_CATEGORIES

SUM_SLACK = 1e-6
"""Tolerance of a declared sum, relative to its total."""

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def is_text(arrow_type: Any) -> bool:
    """Return whether a column is text (plain or dictionary-encoded)."""
    import pyarrow.types as pt

    if pt.is_dictionary(arrow_type):
        return is_text(arrow_type.value_type)
    return bool(pt.is_string(arrow_type) or pt.is_large_string(arrow_type) or pt.is_string_view(arrow_type))


def is_number(arrow_type: Any) -> bool:
    """Return whether a column is numeric."""
    import pyarrow.types as pt

    return bool(pt.is_integer(arrow_type) or pt.is_floating(arrow_type) or pt.is_decimal(arrow_type))


def as_text(array: Any) -> Any:
    """Convert a column to trimmed text, with null for missing values; booleans become no and yes."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as pt

    if pt.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pt.is_boolean(array.type):
        return pc.if_else(array, "yes", "no")
    if pt.is_decimal(array.type):
        return _shortest(array)
    if pt.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
        whole = pc.cast(pc.cast(array, pa.int64(), safe=False), pa.string())
        is_whole = pc.and_(pc.equal(array, pc.floor(array)), pc.less(pc.abs(array), 2.0**53))
        array = pc.if_else(is_whole, whole, pc.cast(array, pa.string()))  # each by itself: 5.0 is "5" in any company
    text = pc.utf8_trim_whitespace(pc.cast(array, pa.string()))
    absent = pc.or_(pc.equal(text, ""), pc.equal(text, "?"))
    return pc.if_else(absent, pa.scalar(None, pa.string()), text)


def _shortest(decimals: Any) -> Any:
    """Decimals as text without closing zeros: how many there are is up to the longest number of the whole column."""
    import pyarrow as pa

    codes = decimals.dictionary_encode()
    plain = [format(number, "f") for number in codes.dictionary.to_pylist()]
    words = [text.rstrip("0").rstrip(".") if "." in text else text for text in plain]
    return pa.array(words, pa.string()).take(codes.indices)


def as_numbers(array: Any) -> Floats | None:
    """Convert a column to float64, with NaN for missing values; None if some text is not a number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if is_text(array.type):
        array = as_text(array)
    try:
        numbers: Floats = pc.cast(array, pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        return None
    return numbers


def first_not_number(array: Any) -> tuple[int, str]:
    """Return position and text of the first value that is not a number."""
    for place, value in enumerate(as_text(array).to_pylist()):
        try:
            float(value if value is not None else 0)
        except ValueError:
            return place, str(value)
    return 0, ""


@dataclass
class _Seen:
    """What has been seen of one column so far."""

    numeric: bool
    textual: bool
    categories: set[str] = field(default_factory=set)
    low: float = np.inf
    high: float = -np.inf
    missing: bool = False
    whole: bool = True
    odd_one: tuple[int, str] | None = None


class TableFit:
    """Learns the columns of a table from training records, a batch at a time."""

    def __init__(self, names: Sequence[str], arrow_schema: Any, untyped: bool, file: str) -> None:
        import pyarrow.types as pt

        self._file = file
        self._seen: dict[str, _Seen] = {}
        for name in names:
            arrow_type = arrow_schema.field(name).type
            text = is_text(arrow_type)
            if not (text or is_number(arrow_type) or pt.is_boolean(arrow_type) or pt.is_null(arrow_type)):
                what = f"values of type {arrow_type} cannot be part of a table"
                raise Place(file, name).fault(what, "remove it from x, or store it as numbers or text")
            self._seen[name] = _Seen(numeric=is_number(arrow_type) or (text and untyped), textual=text)

    def add(self, first_row: int, batch: Any) -> None:
        """Add a batch of records."""
        for name, seen in self._seen.items():
            array = batch.column(name)
            numbers = as_numbers(array) if seen.numeric else None
            if seen.numeric and numbers is None:
                seen.numeric = False
                place, text = first_not_number(array)
                seen.odd_one = (first_row + place, text)
            if seen.numeric and numbers is not None:
                self._add_numbers(name, seen, numbers, first_row)
            if seen.textual or not seen.numeric:
                self._add_categories(name, seen, array)

    def _add_numbers(self, name: str, seen: _Seen, numbers: Floats, first_row: int) -> None:
        _check_infinite(numbers, Place(self._file, name, first_row))
        known = numbers[~np.isnan(numbers)]
        seen.missing |= len(known) < len(numbers)
        if len(known):
            seen.low, seen.high = min(seen.low, float(known.min())), max(seen.high, float(known.max()))
            seen.whole = seen.whole and bool((known == np.floor(known)).all())

    def _add_categories(self, name: str, seen: _Seen, array: Any) -> None:
        import pyarrow.compute as pc

        # A CSV column of numbers may still turn out to be categorical, but a long list of them need not be kept.
        if seen.numeric and len(seen.categories) > MAX_CATEGORIES:
            return
        text = as_text(array)
        seen.missing |= text.null_count > 0
        seen.categories.update(value for value in pc.unique(text).to_pylist() if value is not None)
        if not seen.numeric and len(seen.categories) > MAX_CATEGORIES:
            if seen.odd_one is not None and seen.low <= seen.high:
                row, value = seen.odd_one
                raise _not_a_number(value, Place(self._file, name, row))
            raise Place(self._file, name).fault(f"has more than {MAX_CATEGORIES} distinct values", "remove it from x")

    def columns(self) -> tuple[Column, ...]:
        """Return the columns as learned so far."""
        return tuple(self._column(name, seen) for name, seen in self._seen.items())

    def _column(self, name: str, seen: _Seen) -> Column:
        if not seen.numeric:
            return Column(name, "categorical", categories=tuple(sorted(seen.categories)), nullable=seen.missing)
        if seen.low > seen.high:
            return Column(name, "numeric", low=0.0, high=0.0, nullable=True)
        return Column(name, "numeric", low=seen.low, high=seen.high, nullable=seen.missing, integer=seen.whole)


Unseen = Counter[str]
"""How many categories that training never saw counted as missing, by column."""


def encode_table(
    batch: Any, columns: Sequence[Column], file: str, first_row: int, unseen: Unseen | None = None
) -> FloatArray:
    """Encode records as vectors laid out by ``columns``. A category or gap that training never had raises; with
    ``unseen`` such a category is counted there, and is missing."""
    out = np.zeros((batch.num_rows, sum(column.width for column in columns)), dtype=np.float32)
    start = 0
    for column in columns:
        target = out[:, start : start + column.width]
        where = Place(file, column.name, first_row)
        if column.kind == "numeric":
            _encode_numeric(batch.column(column.name), column, target, where)
        else:
            _encode_categorical(batch.column(column.name), column, target, where, unseen)
        start += column.width
    return out


def encode_vectors(values: npt.NDArray[Any], columns: Sequence[Column], where: Place) -> FloatArray:
    """Encode records that are lists of numbers, with a range for each entry of the list."""
    if values.shape[1:] != (len(columns),):
        raise wrong_shape(values.shape[1:], (len(columns),), where)
    low = np.array([column.low for column in columns])
    high = np.array([column.high for column in columns])
    span = high - low
    strict = np.array([column.strict for column in columns], dtype=bool)
    outside = strict & ((values < low) | (values > high))
    if outside.any():
        row, place = (int(found) for found in np.argwhere(outside)[0])
        entry = columns[place]
        raise _outside(float(values[row, place]), entry, replace(where, column=entry.name).below(row))
    scaled: FloatArray = np.clip((values - low) / np.where(span > 0, span, 1), 0, 1).astype(np.float32)
    return scaled


def _encode_numeric(array: Any, column: Column, out: FloatArray, where: Place) -> None:
    numbers = as_numbers(array)
    if numbers is None:
        place, text = first_not_number(array)
        raise _not_a_number(text, where.below(place))
    _check_infinite(numbers, where)
    missing = np.isnan(numbers)
    _check_missing(missing, column, where)
    if column.strict:
        _check_declared(numbers, column, where)
    span = column.high - column.low
    out[:, 0] = np.where(missing, 0, np.clip((numbers - column.low) / (span if span > 0 else 1), 0, 1))
    if column.nullable:
        out[:, 1] = missing


def _encode_categorical(array: Any, column: Column, out: FloatArray, where: Place, unknown: Unseen | None) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    text = as_text(array)
    missing: Bools = text.is_null().to_numpy(zero_copy_only=False)
    _check_missing(missing, column, where)
    found = pc.index_in(text, value_set=pa.array(column.categories, pa.string()))
    codes = pc.fill_null(found, -1).to_numpy(zero_copy_only=False)
    unseen = (codes < 0) & ~missing
    if unseen.any() and unknown is not None and column.nullable:
        unknown[column.name] += int(unseen.sum())
        missing = missing | unseen
    elif unseen.any():
        place = int(np.argmax(unseen))
        known = f"the {len(column.categories)} categories of "
        known += "the declared domain" if column.strict else "the training data"
        remedy = "map it to one of them or remove the row" + (", or correct the domain" if column.strict else "")
        if unknown is not None:
            remedy += "; it cannot count as missing, because no value of this column was missing in training"
        elif column.nullable:
            remedy += ", or release with --unseen missing"
        raise where.below(place).fault(f"'{text[place].as_py()}' is not among {known}", remedy)
    codes = np.where(missing, len(column.categories), codes)
    out[np.arange(len(codes)), codes] = 1


def _check_missing(missing: Bools, column: Column, where: Place) -> None:
    if not column.nullable and missing.any():
        why = "the domain rules out" if column.strict else "never happened in the training data"
        remedy = "fill it in or remove the row" + (", or declare nullable = true" if column.strict else "")
        raise where.below(int(np.argmax(missing))).fault(f"the value is missing, which {why}", remedy)


def _check_declared(numbers: Floats, column: Column, where: Place) -> None:
    """Raise unless all numbers are in the declared range, and whole if declared so. Missing values pass."""
    outside = (numbers < column.low) | (numbers > column.high)
    if outside.any():
        place = int(np.argmax(outside))
        raise _outside(float(numbers[place]), column, where.below(place))
    broken = ~np.isnan(numbers) & (numbers != np.floor(numbers)) & column.integer
    if broken.any():
        place = int(np.argmax(broken))
        what = f"{numbers[place]:g} is not a whole number, as the domain requires"
        raise where.below(place).fault(what, "correct the value or the domain")


def _not_a_number(text: str, where: Place) -> DataError:
    remedy = "correct it, or leave it empty or write ? if it is missing"
    return where.fault(f"'{text}' is not a number", remedy)


def _outside(number: float, column: Column, where: Place) -> DataError:
    what = f"{number:g} lies outside the declared range {column.low:g} to {column.high:g}"
    return where.fault(what, "correct it, remove the row, or declare clip = true")


def check_sums(batch: Any, schema: Schema, file: str, first_row: int) -> None:
    """Raise unless the declared sums hold in every record that has all their columns."""
    for one in schema.sums:
        parts = {name: as_numbers(batch.column(name)) for name in one.names}
        if any(numbers is None for numbers in parts.values()):
            continue  # not numbers: the encoding will say where
        known: dict[str, Floats] = {name: numbers for name, numbers in parts.items() if numbers is not None}
        total = known[one.total] if isinstance(one.total, str) else np.full(batch.num_rows, one.total)
        found = np.sum([known[name] for name in one.columns], axis=0)
        slack = SUM_SLACK * np.maximum(1.0, np.abs(total))
        wrong = np.abs(found - total) > slack  # a missing value compares as false
        if wrong.any():
            place = int(np.argmax(wrong))
            parts_shown = " + ".join(one.columns)
            what = f"{parts_shown} is {found[place]:g}, but must be {total[place]:g} by the declared domain"
            raise Place(file, row=first_row + place).fault(what, "correct the record or the domain's sums")


def _check_infinite(numbers: Floats, where: Place) -> None:
    infinite = np.isinf(numbers)
    if infinite.any():
        raise where.below(int(np.argmax(infinite))).fault("the value is infinite", "correct it or remove the row")


def decode_table(x: npt.NDArray[Any], schema: Schema) -> Any:
    """Decode vectors to a ``pyarrow.Table`` in the original units.

    Any vectors of the right width are accepted, even if no record encodes to them: the category with the largest entry
    wins, integer columns are rounded, and a value is missing if its indicator exceeds one half.
    """
    import pyarrow as pa

    if schema.kind != "table":
        raise DataError(f"only tables can be decoded into columns, but these records are of kind '{schema.kind}'.")
    values = np.asarray(x, dtype=np.float64)
    if values.ndim != 2 or values.shape[1:] != schema.shape:
        raise DataError(f"the vectors have shape {values.shape[1:]}, but the schema says {schema.shape}.")
    out: dict[str, Any] = {}
    start = 0
    for column in schema.columns:
        part = values[:, start : start + column.width]
        decode = _decode_numeric if column.kind == "numeric" else _decode_categorical
        out[column.name] = decode(part, column)
        start += column.width
    return pa.table(out)


def _decode_numeric(part: Floats, column: Column) -> Any:
    import pyarrow as pa

    numbers = column.low + np.clip(part[:, 0], 0, 1) * (column.high - column.low)
    missing = part[:, 1] > 0.5 if column.nullable else np.zeros(len(part), dtype=bool)
    if column.integer:
        return pa.array(np.rint(numbers).astype(np.int64), mask=missing)
    return pa.array(numbers, mask=missing)


def _decode_categorical(part: Floats, column: Column) -> Any:
    import pyarrow as pa

    if not column.categories:
        return pa.nulls(len(part), pa.string())
    names = np.array([*column.categories, *([None] if column.nullable else [])], dtype=object)
    return pa.array(names[part.argmax(axis=1)].tolist(), pa.string())
