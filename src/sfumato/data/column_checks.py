"""Checks of a table's columns, a batch at a time, and how each of them will be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from sfumato.core.errors import DataError
from sfumato.data.column_evidence import ColumnEvidence
from sfumato.data.encoding.list_cells import is_encoded, is_list
from sfumato.data.encoding.tables import as_numbers, as_text, is_text
from sfumato.data.file_errors import Place, Problem, problem_of, rows_text
from sfumato.data.limits import MAX_CATEGORIES
from sfumato.data.table_inference import columns_of, cycles_of, date_of, is_quantity, why_left_out

DECLARE = "declare the column in a domain file if that is wrong (sfumato data domain)"


class TableColumn:
    """Collects the problems of one table column. ``judged``: its kind is told from the records, not by a domain."""

    def __init__(self, where: Place, arrow_type: Any, untyped: bool, *, judged: bool, named: bool) -> None:
        self._where, self._untyped, self._judged, self._named = where, untyped, judged, named
        self._rows = 0
        self._missing = 0
        self._values: set[Any] = set()
        self._nan: list[int] = []
        self._infinite: list[int] = []
        self._unusable: Problem | None = None
        self._evidence: ColumnEvidence | None = None
        if judged and not (is_list(arrow_type) or is_encoded(arrow_type)):
            try:
                self._evidence = ColumnEvidence(where, arrow_type, untyped)
            except DataError as error:
                self._unusable = problem_of(error, where.file, "remove it from x")

    @property
    def name(self) -> str:
        return str(self._where.column)

    def add(self, first_row: int, array: Any) -> None:
        if is_list(array.type) or is_encoded(array.type) or self._unusable is not None:
            return
        import pyarrow.compute as pc
        import pyarrow.types as pt

        self._rows += len(array)
        if pt.is_temporal(array.type):
            text, numbers = array, None
        else:
            text = as_text(array)
            numbers = as_numbers(array) if self._untyped or not is_text(array.type) else None
        self._missing += text.null_count
        if len(self._values) < 3:
            self._values.update(str(value) for value in pc.unique(text).to_pylist() if value is not None)
        if numbers is not None:
            valid = array.is_valid().to_numpy(zero_copy_only=False) if not is_text(array.type) else False
            self._nan += (first_row + np.flatnonzero(np.isnan(numbers) & valid)).tolist()
            infinite = np.isinf(numbers)
            if infinite.any():
                self._infinite += (first_row + np.flatnonzero(infinite)).tolist()
                return
        if self._evidence is not None:
            self._evidence.add(first_row, array)

    def problems(self) -> Iterator[Problem]:
        """Return what is wrong with the column as a whole, then with some of its rows."""
        if self._unusable is not None:
            yield self._unusable
        if self._rows and self._missing == self._rows:
            yield self._where.warning("every value is missing", "remove it from x")
        elif self._rows > 1 and len(self._values) == 1 and not self._missing:
            yield self._where.warning(f"is constant ('{next(iter(self._values))}')", "remove it from x")
        if self._nan:
            what = f"{counted(len(self._nan), 'value is', 'values are')} NaN and count as missing"
            yield self._where.below(self._nan[0]).warning(what, "store null if that is what you mean")
        if self._infinite:
            what = f"{counted(len(self._infinite), 'value is', 'values are')} infinite"
            yield self._where.below(self._infinite[0]).error(what, "correct them or remove the rows")
        elif self._evidence is not None and self._unusable is None:
            yield from self._reading(self._evidence)

    def _reading(self, seen: ColumnEvidence) -> Iterator[Problem]:
        """What is lost or refused by the way in which the column is read."""
        why = None if self._named else why_left_out(self.name, seen)
        if why is not None:
            yield self._where.warning(
                f"is left out of the records, because {why}", "name the columns of x to keep it (--x)"
            )
            return
        try:
            tuple(columns_of(self.name, seen))
        except DataError as error:
            yield problem_of(error, self._where.file, "correct it")
            return
        dates = date_of(seen)
        if dates is not None:
            form, _, others = dates
            yield from self._absent("dates", others, None)
            doubtful = {"dmy", "mdy"} <= {other for other, _, _ in seen.possible_dates()}
            if doubtful and form in ("dmy", "mdy"):
                what = f"the dates may be {_ORDERS['dmy']} or {_ORDERS['mdy']}, and are read as {_ORDERS[form]}"
                yield self._where.warning(what, "declare them in a domain file if that is wrong (form)")
        elif seen.numeric and is_quantity(self.name, seen):
            yield from self._absent("numbers", seen.others, seen.rows_of_others)

    def _absent(self, kind: str, others: dict[str, int], rows: int | None) -> Iterator[Problem]:
        if others:
            shown = ", ".join(f"'{text}' ({rows_text(self._where.file, [row])})" for text, row in others.items())
            many = "" if rows is None else f" in {counted(rows, 'row', 'rows')}"
            what = f"the column holds {kind}, and {shown} counts as missing{many}"
            yield self._where.warning(
                what, "correct it if it is a slip; else an indicator says where the value is missing"
            )

    def kind(self) -> str | None:
        """What a note says about how the column is read: its kind, with details; None if there is nothing to say."""
        seen = self._evidence
        if seen is None or self._unusable or self._infinite or self._missing == self._rows:
            return None
        if not self._named and why_left_out(self.name, seen) is not None:
            return None
        dates = date_of(seen)
        if dates is not None:
            return f"date:{', '.join(cycles_of(dates[0], dates[1]))}"
        if seen.numeric and seen.span.some and not is_quantity(self.name, seen):
            return f"code:{min(len(seen.categories), MAX_CATEGORIES):,}"
        return None


_ORDERS = {"dmy": "day/month/year", "mdy": "month/day/year"}


def reading_notes(where: Place, columns: Iterable[TableColumn]) -> Iterator[Problem]:
    """How columns are read that are neither plain numbers nor texts."""
    kinds = [(one.name, kind.partition(":")) for one in columns if (kind := one.kind()) is not None]
    codes = [f"{name} ({detail})" for name, (kind, _, detail) in kinds if kind == "code"]
    if codes:
        yield where.note(f"read as codes, with so many categories, not as quantities: {', '.join(codes)}", DECLARE)
    dates = [f"{name} ({detail})" if detail else name for name, (kind, _, detail) in kinds if kind == "date"]
    if dates:
        yield where.note(f"read as dates, with their place in these cycles: {', '.join(dates)}", DECLARE)


def counted(number: int, one: str, several: str) -> str:
    """``1 value is`` or ``1,200 values are``."""
    return f"{number:,} {one if number == 1 else several}"
