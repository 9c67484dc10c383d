"""Checks of one table column, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sfumato.data.encoding.list_cells import is_encoded, is_list
from sfumato.data.encoding.tables import as_numbers, as_text, first_not_number, is_text
from sfumato.data.file_errors import Place, Problem
from sfumato.data.label_expressions import is_number


class TableColumn:
    """Collects the problems of one table column."""

    def __init__(self, where: Place) -> None:
        self._where = where
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

    def problems(self) -> Iterator[Problem]:
        """Return what is wrong with the column as a whole, then with some of its rows."""
        if self._rows and self._missing == self._rows:
            yield self._where.warning("every value is missing", "remove it from x")
        elif self._rows > 1 and len(self._values) == 1 and not self._missing:
            yield self._where.warning(f"is constant ('{next(iter(self._values))}')", "remove it from x")
        if self._nan:
            what = f"{len(self._nan)} values are NaN and count as missing"
            yield self._where.below(self._nan[0]).warning(what, "store null if that is what you mean")
        if self._infinite:
            what = f"{len(self._infinite)} values are infinite"
            yield self._where.below(self._infinite[0]).error(what, "correct them or remove the rows")
        if self._not_numbers and self._numbers > 0.9 * self._rows:
            row, value = self._not_numbers[0]
            what = f"'{value}' is not a number, so the whole column becomes categorical"
            yield self._where.below(row).warning(what, "correct it, or leave it empty or write ? if it is missing")
