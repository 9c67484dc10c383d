"""Table rows as vectors in [0, 1], and back.

Numeric columns and dates are scaled by their range and categorical ones are one-hot. Null, empty text, ``?``, NaN and
the texts that a column has for it count as missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.column_rules import among, broken_rows
from sfumato.core.dataset import FloatArray
from sfumato.core.errors import DataError
from sfumato.core.schema import Column, Schema
from sfumato.data.encoding.dates import as_dates, in_cycle, text_of
from sfumato.data.encoding.list_cells import wrong_shape
from sfumato.data.file_errors import Place

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
        where = Place(file, column.source, first_row)
        if column.cycle:
            dates = numbers_of(batch.column(column.source), column, where)
            target[:, 0] = (in_cycle(dates, column.cycle) - column.low) / (column.high - column.low)
        elif column.kind == "numeric":
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
    numbers = numbers_of(array, column, where)
    missing = np.isnan(numbers)
    _check_missing(missing, column, where)
    if column.strict:
        _check_declared(numbers, column, where)
    span = column.high - column.low
    out[:, 0] = np.where(missing, 0, np.clip((numbers - column.low) / (span if span > 0 else 1), 0, 1))
    if column.nullable:
        out[:, 1] = missing


def numbers_of(array: Any, column: Column, where: Place) -> Floats:
    """The numbers or dates of a numeric column, NaN where missing; any other text raises, and so does infinity."""
    array = without_absent(array, column)
    if column.form:
        dates, odd = as_dates(array, column.form)
        for text, place in odd.items():
            raise _no_date(text, column.form, where.below(place))
        return dates
    numbers = as_numbers(array)
    if numbers is None:
        place, text = first_not_number(array)
        raise _not_a_number(text, where.below(place))
    check_infinite(numbers, where)
    return numbers


def without_absent(array: Any, column: Column) -> Any:
    """The column with null for each text that stands for a missing number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (column.absent and is_text(array.type)):
        return array
    text = as_text(array)
    gone = pc.is_in(text, value_set=pa.array(column.absent, pa.string()))
    return pc.if_else(gone, pa.scalar(None, pa.string()), text)


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
        kind = "a day without a time" if column.form else "a whole number"
        what = f"{shown(float(numbers[place]), column)} is not {kind}, as the domain requires"
        raise where.below(place).fault(what, "correct the value or the domain")


def _not_a_number(text: str, where: Place) -> DataError:
    remedy = "correct it, or leave it empty or write ? if it is missing"
    return where.fault(f"'{text}' is not a number", remedy)


def _no_date(text: str, form: str, where: Place) -> DataError:
    shown = {"iso": "2024-03-31", "dmy": "31.03.2024", "mdy": "03/31/2024", "clock": "23:59"}[form]
    what = f"'{text}' is no {'time' if form == 'clock' else 'date'} written like {shown}"
    return where.fault(what, "correct it, or leave it empty if it is missing")


def _outside(number: float, column: Column, where: Place) -> DataError:
    found, low, high = (shown(one, column) for one in (number, column.low, column.high))
    what = f"{found} lies outside the declared range {low} to {high}"
    return where.fault(what, "correct it, remove the row, or declare clip = true")


def shown(number: float, column: Column) -> str:
    """A number of a column as people write it: dates as dates."""
    return text_of(number, column.form, whole=column.integer) if column.form else f"{number:g}"


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


def check_rules(batch: Any, x: FloatArray, schema: Schema, file: str, first_row: int) -> None:
    """Raise unless the declared rules hold in every record, given as it stands in the file and encoded."""
    inside: dict[str, Bools] = {}
    names = {column.name for column in schema.columns}
    rules = [rule for rule in schema.rules if set(rule.names) <= names]  # others are about labels too
    wanted = {name for rule in rules for name in rule.names}
    values: dict[str, npt.NDArray[Any]] = {}
    start = 0
    for column in schema.columns:
        if column.name in wanted and column.kind == "categorical":
            values[column.name] = x[:, start : start + column.width].argmax(axis=1)
        elif column.name in wanted:
            values[column.name] = numbers_of(batch.column(column.name), column, Place(file, column.name, first_row))
        start += column.width
    categories = {column.name: column.categories for column in schema.columns}
    for rule in rules:
        for name, some in (*rule.when.items(), *rule.then.items()):
            inside[name] = among(some, categories[name], values[name])
        broken = broken_rows(rule, inside)
        if broken.any():
            where = Place(file, row=first_row + int(np.argmax(broken)))
            raise where.fault(f"the record breaks a rule of the domain: {rule}", "correct the record or the rule")


def check_infinite(numbers: Floats, where: Place) -> None:
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
        if not column.cycle:  # the date itself says where it stands in a cycle
            decode = _decode_numeric if column.kind == "numeric" else _decode_categorical
            out[column.name] = decode(part, column)
        start += column.width
    return pa.table(out)


def _decode_numeric(part: Floats, column: Column) -> Any:
    import pyarrow as pa

    numbers = column.low + np.clip(part[:, 0], 0, 1) * (column.high - column.low)
    missing = part[:, 1] > 0.5 if column.nullable else np.zeros(len(part), dtype=bool)
    if column.form:
        return _decode_dates(numbers, missing, column)
    if column.integer:
        return pa.array(np.rint(numbers).astype(np.int64), mask=missing)
    return pa.array(numbers, mask=missing)


def _decode_dates(numbers: Floats, missing: Bools, column: Column) -> Any:
    """Dates, moments to the second, and times of day to the second."""
    import pyarrow as pa

    if column.form == "clock":
        seconds = np.clip(np.rint(numbers * 3600.0), 0, 86_399).astype(np.int32)
        return pa.array(seconds, pa.int32(), mask=missing).cast(pa.time32("s"))
    if column.integer:
        return pa.array(np.rint(numbers).astype(np.int32), pa.int32(), mask=missing).cast(pa.date32())
    return pa.array(np.rint(numbers * 86_400.0).astype(np.int64), mask=missing).cast(pa.timestamp("s"))


def _decode_categorical(part: Floats, column: Column) -> Any:
    import pyarrow as pa

    if not column.categories:
        return pa.nulls(len(part), pa.string())
    names = np.array([*column.categories, *([None] if column.nullable else [])], dtype=object)
    return pa.array(names[part.argmax(axis=1)].tolist(), pa.string())
