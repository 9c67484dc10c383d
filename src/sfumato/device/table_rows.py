"""Rows of a table as vectors, from plain Python values: what ``data.encoding.tables`` does to whole columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from datetime import time as clock
from typing import Any

import numpy as np

from sfumato.core.dataset import FloatArray
from sfumato.core.schema import Column
from sfumato.data.encoding.dates import in_cycle, number_of
from sfumato.data.file_errors import Place


def columns_of(plain: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """The columns of a manifest."""
    return tuple(
        Column(**{**one, "categories": tuple(one["categories"]), "absent": tuple(one.get("absent", ()))})
        for one in plain
    )


def encoded_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], name: str) -> FloatArray:
    """Rows, each a mapping from column to value, as vectors in [0, 1] laid out by ``columns``."""
    out = np.zeros((len(rows), sum(column.width for column in columns)), dtype=np.float32)
    for number, row in enumerate(rows):
        start = 0
        for column in columns:
            where = Place(name, column.source, number)
            if column.source not in row:
                raise where.fault("the column is missing", "give a value, or an empty one if that is allowed")
            _encode(row[column.source], column, out[number, start : start + column.width], where)
            start += column.width
    return out


def _encode(value: Any, column: Column, out: FloatArray, where: Place) -> None:
    text = as_text(value)
    if column.kind == "numeric" and text is not None and (text in column.absent or text.lower() == "nan"):
        text = None
    if column.cycle:
        found = math.nan if text is None else _number(text, column, where)
        out[0] = (in_cycle(np.array([found]), column.cycle)[0] - column.low) / (column.high - column.low)
        return
    if text is None and not column.nullable:
        raise where.fault("the value is missing, which never happened in the training data", "fill it in")
    if column.kind == "categorical":
        out[_place(text, column, where)] = 1.0
    elif text is None:
        out[1] = 1.0
    else:
        number = _number(text, column, where)
        if column.strict and not column.low <= number <= column.high:
            what = f"{number:g} lies outside the declared range {column.low:g} to {column.high:g}"
            raise where.fault(what, "correct it")
        if column.strict and column.integer and number != math.floor(number):
            raise where.fault(f"{number:g} is not a whole number, as the domain requires", "correct it")
        span = column.high - column.low
        out[0] = min(max((number - column.low) / (span if span > 0 else 1.0), 0.0), 1.0)


def _place(text: str | None, column: Column, where: Place) -> int:
    """Which entry of a one-hot code."""
    if text is None:
        return len(column.categories)
    for said in (text, plain_number(text)):
        if said in column.categories:
            return column.categories.index(said)
    what = f"'{text}' is not among the {len(column.categories)} categories of the training data"
    raise where.fault(what, "map it to one of them, or leave the record out")


def _number(text: str, column: Column, where: Place) -> float:
    found = number_of(text, column.form) if column.form else _float(text)
    if found is None or math.isnan(found):
        raise where.fault(f"'{text}' is no {'date' if column.form else 'number'} as in training", "correct it")
    if math.isinf(found):
        raise where.fault("the value is infinite", "correct it")
    return found


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def as_text(value: Any) -> str | None:
    """A value as files are read: trimmed, yes and no for booleans, None if it is missing."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return str(int(value)) if abs(value) < 2.0**53 and value == math.floor(value) else repr(value)
    if isinstance(value, (datetime, date, clock)):
        return value.isoformat()
    text = str(value).strip()
    return None if text in ("", "?") else text


def plain_number(text: str) -> str:
    """5.0 and 05 as the 5 that a column of whole numbers is read as; any other text as it is."""
    found = _float(text)
    if found is None or not math.isfinite(found):
        return text
    return as_text(found) or text
