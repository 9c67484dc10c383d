"""What is seen of one table column, a batch at a time, before it is decided how the column is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.data.encoding.dates import FORMS, DateForm, as_dates, number_of
from sfumato.data.encoding.tables import as_numbers, as_text, check_infinite, is_number, is_text
from sfumato.data.file_errors import Place
from sfumato.data.label_expressions import is_number as reads_as_number
from sfumato.data.limits import MAX_CATEGORIES

Floats = npt.NDArray[np.float64]

JUDGED_ROWS = 20_000
"""Rows from which it is told how much values differ."""
MOST_LEVELS = 10
"""Different numbers that are kept."""
MOST_OTHERS = 3
"""So many texts can stand for "none" in a column of numbers or dates."""


@dataclass
class Span:
    """The range of the numbers so far, and whether all are whole."""

    low: float = np.inf
    high: float = -np.inf
    whole: bool = True

    @property
    def some(self) -> bool:
        return self.low <= self.high

    def add(self, known: Floats) -> None:
        if len(known):
            self.low, self.high = min(self.low, float(known.min())), max(self.high, float(known.max()))
            self.whole = self.whole and bool((known == np.floor(known)).all())


class ColumnEvidence:
    """One column of a file: its numbers, its dates in each form that is still possible, its different texts."""

    def __init__(self, where: Place, arrow_type: Any, untyped: bool) -> None:
        import pyarrow.types as pt

        self.where = where
        self.textual = is_text(arrow_type)
        self.temporal = bool(pt.is_temporal(arrow_type) and not pt.is_duration(arrow_type))
        self.clock = bool(pt.is_time(arrow_type))
        self.numeric = is_number(arrow_type) or (self.textual and untyped)
        if pt.is_interval(arrow_type) or not (
            self.textual or self.temporal or self.numeric or pt.is_boolean(arrow_type) or pt.is_null(arrow_type)
        ):
            what = f"values of type {arrow_type} cannot be part of a table"
            raise where.fault(what, "remove it from x, or store it as numbers or text")
        self.rows, self.missing = 0, 0
        self.span = Span()
        self.levels: set[float] = set()
        self.zeros = False
        self.others: dict[str, int] = {}
        self.rows_of_others = 0
        self.categories: set[str] = set()
        self.dates = {form: Span() for form in FORMS} if self.textual else {}
        self.no_dates: dict[DateForm, dict[str, int]] = {form: {} for form in self.dates}
        self._head: list[Any] = []
        self._judged = 0

    def add(self, first_row: int, array: Any) -> None:
        """Add a batch."""
        self.rows += len(array)
        if self.temporal:
            dates = as_dates(array, "")[0]
            self.missing += int(np.isnan(dates).sum())
            self.span.add(dates[~np.isnan(dates)])
            return
        text = as_text(array)
        if self._judged < JUDGED_ROWS:
            self._head.append(text.slice(0, JUDGED_ROWS - self._judged))
            self._judged += len(self._head[-1])
        missing = text.null_count
        if self.numeric:
            numbers = as_numbers(array)
            if numbers is None:
                numbers = self._sorted_out(first_row, text)
            else:
                missing = int(np.isnan(numbers).sum())
            check_infinite(numbers, Place(self.where.file, self.where.column, first_row))
            known = numbers[~np.isnan(numbers)]
            self.span.add(known)
            if len(self.levels) <= MOST_LEVELS:
                self.levels.update(np.unique(known).tolist())
        self.missing += missing
        if self.textual or len(self.categories) <= MAX_CATEGORIES:
            self._add_texts(first_row, text)

    def head(self) -> list[str]:
        """The texts of the first rows that have one."""
        return [one for part in self._head for one in part.to_pylist() if one is not None]

    def _sorted_out(self, first_row: int, text: Any) -> Floats:
        """The numbers of a batch of text, noting what is none."""
        import pyarrow.compute as pc

        coded = pc.dictionary_encode(text)
        texts = coded.dictionary.to_pylist()
        known = [float(one) if one is not None and reads_as_number(one) else np.nan for one in texts]
        codes = pc.fill_null(coded.indices, len(texts)).to_numpy(zero_copy_only=False)
        for place, one in enumerate(texts):
            if one is not None and np.isnan(known[place]):
                where = np.flatnonzero(codes == place)
                self.rows_of_others += len(where)
                if len(self.others) <= MOST_OTHERS:
                    self.others.setdefault(one, first_row + int(where[0]))
        return np.asarray(np.array([*known, np.nan])[codes], dtype=np.float64)

    def _add_texts(self, first_row: int, text: Any) -> None:
        import pyarrow.compute as pc

        if self.textual and self.numeric and not self.zeros:
            self.zeros = bool(pc.any(pc.match_substring_regex(text, r"^0\d+$")).as_py())
        if len(self.categories) <= MAX_CATEGORIES or self.dates:
            values = [one for one in pc.unique(text).to_pylist() if one is not None]
            fresh = [one for one in values if one not in self.categories]
            if len(self.categories) <= MAX_CATEGORIES:
                self.categories.update(fresh)
            for form in list(self.dates):
                self._add_dates(form, first_row, text, fresh)

    def _add_dates(self, form: DateForm, first_row: int, text: Any, fresh: list[str]) -> None:
        import pyarrow.compute as pc

        found = {one: number_of(one, form) for one in fresh}
        odd = self.no_dates[form]
        for one, number in found.items():
            if number is None and one not in odd:
                odd[one] = first_row + int(pc.index(text, one).as_py())
                if len(odd) > MOST_OTHERS:
                    del self.dates[form]
                    return
        self.dates[form].add(np.array([number for number in found.values() if number is not None]))

    def possible_dates(self) -> Iterator[tuple[str, Span, dict[str, int]]]:
        """Each form in which dates were seen, with their range and the other texts."""
        for form, span in self.dates.items():
            if span.some and len(self.no_dates[form]) < max(2, len(self.categories) - len(self.no_dates[form])):
                yield form, span, self.no_dates[form]
