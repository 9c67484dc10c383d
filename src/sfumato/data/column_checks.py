"""Checks of one table column, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from sfumato.data.encoding.list_cells import is_encoded, is_list
from sfumato.data.encoding.tables import as_numbers, as_text, first_not_number, is_text
from sfumato.data.label_expressions import is_number

Finding = tuple[Literal["error", "warning"], str, str, str | None, int | None]


class TableColumn:
    """Collects the problems of one table column."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._rows = 0
        self._missing = 0
        self._values: set[Any] = set()
        self._nan: list[int] = []
        self._infinite: list[int] = []
        self._numbers = 0
        self._not_numbers: list[tuple[int, str]] = []

    def add(self, first_row: int, array: Any, untyped: bool) -> None:
        if is_list(array.type) or is_encoded(array.type):
            return
        import pyarrow.compute as pc

        text = as_text(array)
        self._rows += len(array)
        self._missing += text.null_count
        if len(self._values) < 3:
            self._values.update(value for value in pc.unique(text).to_pylist() if value is not None)
        numbers = as_numbers(array) if untyped or not is_text(array.type) else None
        if numbers is not None:
            self._numbers += len(array)
            valid = array.is_valid().to_numpy(zero_copy_only=False) if not is_text(array.type) else False
            self._nan += (first_row + np.flatnonzero(np.isnan(numbers) & valid)).tolist()
            self._infinite += (first_row + np.flatnonzero(np.isinf(numbers))).tolist()
        elif untyped:
            self._count_odd_ones(first_row, array, text)

    def _count_odd_ones(self, first_row: int, array: Any, text: Any) -> None:
        good = sum(is_number(value) for value in text.to_pylist() if value is not None)
        self._numbers += good
        place, value = first_not_number(array)
        self._not_numbers.append((first_row + place, value))

    def findings(self) -> Iterator[Finding]:
        if self._rows and self._missing == self._rows:
            yield ("warning", "every value is missing", "remove it from x", self._name, None)
        elif self._rows > 1 and len(self._values) == 1 and not self._missing:
            yield (
                "warning",
                f"is constant ('{next(iter(self._values))}')",
                "remove it from x",
                self._name,
                None,
            )
        if self._nan:
            yield (
                "warning",
                f"{len(self._nan)} values are NaN and count as missing",
                "store null if that is what you mean",
                self._name,
                self._nan[0],
            )
        if self._infinite:
            yield (
                "error",
                f"{len(self._infinite)} values are infinite",
                "correct them or remove the rows",
                self._name,
                self._infinite[0],
            )
        if self._not_numbers and self._numbers > 0.9 * self._rows:
            row, value = self._not_numbers[0]
            yield (
                "warning",
                f"'{value}' is not a number, so the whole column becomes categorical",
                "correct it, or leave it empty or write ? if it is missing",
                self._name,
                row,
            )
