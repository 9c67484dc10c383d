"""Private labels as a device half takes them: one-hot classes and standardised numbers, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.core.dataset import FloatArray
from sfumato.core.errors import DataError, UsageError
from sfumato.deploy.manifest import AnswerLabel
from sfumato.device.table_rows import as_text, plain_number

Told = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None


def private_codes(labels: Sequence[AnswerLabel], told: Told, given: Any, records: int) -> FloatArray:
    """(N, Σ widths) of the labels that a bundle asks for.

    ``told`` has a value for all records, a list of values, or comes as one mapping a record; what it does not say is
    looked for in ``given``, where that is a row or a list of rows.
    """
    parts = [np.empty((records, 0), dtype=np.float32)]
    for label in labels:
        values = _values(label.name, told, given, records)
        parts.append(np.stack([_code(label, value, number) for number, value in enumerate(values)]))
    return np.concatenate(parts, axis=1)


def _values(name: str, told: Told, given: Any, records: int) -> list[Any]:
    for source in (told, given):
        if isinstance(source, Mapping) and name in source:
            value = source[name]
            values = list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value] * records
        elif (rows := _rows(source, name)) is not None:
            values = [row[name] for row in rows]
        else:
            continue
        if len(values) != records:
            raise DataError(f"private label '{name}': {len(values)} values for {records} records.")
        return values
    raise UsageError(
        f"this bundle needs the private label '{name}' of every record, to hide it: give private={{'{name}': …}}."
    )


def _rows(source: Any, name: str) -> Sequence[Mapping[str, Any]] | None:
    """Rows that all have a value of that name."""
    is_list = isinstance(source, (list, tuple)) and len(source) > 0
    return source if is_list and all(isinstance(one, Mapping) and name in one for one in source) else None


def _code(label: AnswerLabel, value: Any, number: int) -> FloatArray:
    text = as_text(value)
    if not label.classes:
        try:
            found = (float(text or "nan") - label.mean) / label.deviation
        except ValueError:
            found = float("nan")
        if not np.isfinite(found):
            raise DataError(f"record {number}: private label '{label.name}' is {value!r}: give a number.")
        return np.array([found], dtype=np.float32)
    for said in (text, None if text is None else plain_number(text)):
        if said in label.classes:
            out = np.zeros(len(label.classes), dtype=np.float32)
            out[label.classes.index(said)] = 1.0
            return out
    named = ", ".join(label.classes[:8])
    raise DataError(f"record {number}: private label '{label.name}' is {value!r}: give one of {named}.")
