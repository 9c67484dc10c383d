"""How the columns of a table are read, learned from its records: numbers, dates, codes, categories, or not at all.

The rules, in this order (docs/data.md tells them to users):

1. dates and times of day by how they are written; up to three other texts stand for "none";
2. survey weights, ids, counters of rows, text whose values few rows share, free text, and text of too many values
   are left out, unless the user named the columns of x;
3. whole numbers with few different values, with leading zeros, or named like codes are categories;
4. numbers; up to three texts that are no numbers stand for "none", and more are a fault;
5. all else is a category.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from sfumato.core.schema import Column
from sfumato.data.column_evidence import MOST_LEVELS, MOST_OTHERS, ColumnEvidence, Span
from sfumato.data.column_names import may_be_weight, names_code, names_people, names_weight
from sfumato.data.encoding.dates import COSINE, SINE
from sfumato.data.file_errors import Place, rows_text
from sfumato.data.label_expressions import is_number as reads_as_number
from sfumato.data.labels import class_order
from sfumato.data.limits import MAX_CATEGORIES

ROWS_PER_CODE = 10
"""Whole numbers with few different values are codes if each has so many rows on average."""
FEWEST_IDS = 20
"""A column with no more different values than this names no people, and is no free text."""
MOST_ROWS_EACH = 100
"""Nor does one with more rows a value than this."""
ROWS_PER_VALUE = 4
"""Text is a category if each value has so many rows on average."""
_LETTERS = 40
_LARGEST_BODY = 1_000.0
_MOSTLY = 0.9
_COMMA = re.compile(r"^[-+]?\d[\d.]*,\d*$")
SURVEY_WEIGHT = "it is a survey weight, which says how many others a record stands for"
IDS = "it names people or things"
COUNTER = "it counts the rows"
NEAR_KEY = "few rows share a value of it"
FREE_TEXT = "it is free text"
TOO_MANY = f"it has more than {MAX_CATEGORIES:,} different values"


class TableFit:
    """Learns the columns of a table from training records, a batch at a time.

    ``named`` says that the user chose the columns, so that none is left out. Columns in ``like`` are known, and read in
    the same way.
    """

    def __init__(
        self,
        names: Sequence[str],
        arrow_schema: Any,
        untyped: bool,
        file: str,
        *,
        named: bool = False,
        like: Sequence[Column] = (),
    ) -> None:
        self._named, self._like = named, {one.name: one for one in like if not one.cycle}
        self._seen = {name: ColumnEvidence(Place(file, name), arrow_schema.field(name).type, untyped) for name in names}
        self._file = file

    def add(self, first_row: int, batch: Any) -> None:
        """Add a batch of records."""
        for name, seen in self._seen.items():
            seen.add(first_row, batch.column(name))

    def left_out(self) -> dict[str, str]:
        """The columns that are no part of a record, and why."""
        found = {} if self._named else {name: why_left_out(name, one) for name, one in self._seen.items()}
        return {name: why for name, why in found.items() if why is not None}

    def columns(self) -> tuple[Column, ...]:
        """Return the columns as learned so far."""
        out = self.left_out()
        kept = [one for name, seen in self._seen.items() if name not in out for one in self._read(name, seen)]
        if not kept:
            raise Place(self._file).fault("has no column that can be part of a record", "name columns with --x")
        return tuple(kept)

    def _read(self, name: str, seen: ColumnEvidence) -> Iterator[Column]:
        like = self._like.get(name)
        if like is None:
            return columns_of(name, seen)
        if like.kind == "categorical":
            return iter([_category(name, seen, check=False)])
        if like.form or not seen.numeric:
            return columns_of(name, seen)
        return iter([_number(name, seen)])


def why_left_out(name: str, seen: ColumnEvidence) -> str | None:
    """Why the column is no part of a record, or None if it is."""
    if seen.temporal or seen.rows == seen.missing or next(seen.possible_dates(), None) is not None:
        return None
    numbers = seen.span.some and not seen.others
    if numbers and (names_weight(name) or (may_be_weight(name) and _weighs_people(seen))):
        return SURVEY_WEIGHT
    if len(seen.levels) > MOST_LEVELS and not seen.span.whole:
        return None  # a quantity
    head = seen.head()
    different = len(set(head))
    if different <= FEWEST_IDS:
        return None
    if names_people(name) and len(head) <= MOST_ROWS_EACH * different:
        return IDS
    if is_quantity(name, seen):
        dense = numbers and different == len(head) and seen.span.high - seen.span.low < 1.1 * seen.rows
        return COUNTER if dense else None
    if ROWS_PER_VALUE * different > len(head):
        return FREE_TEXT if _letters(head) > _LETTERS else NEAR_KEY
    if len(seen.categories) > MAX_CATEGORIES:
        return TOO_MANY
    return FREE_TEXT if _letters(head) > _LETTERS and 10 * different > len(head) else None


def columns_of(name: str, seen: ColumnEvidence) -> Iterator[Column]:
    """The columns of a record that stand for one column of the file."""
    dates = date_of(seen)
    if dates is not None:
        yield from _date(name, seen, *dates)
    elif seen.rows == seen.missing and seen.numeric:
        yield Column(name, "numeric", low=0.0, high=0.0, nullable=True)
    elif seen.numeric and is_quantity(name, seen):
        yield _number(name, seen)
    else:
        yield _category(name, seen)


def date_of(seen: ColumnEvidence) -> tuple[str, Span, dict[str, int]] | None:
    """How dates are written in the column, their range and the other texts; None if it has no dates."""
    if seen.temporal:
        return ("clock" if seen.clock else "iso", seen.span, {}) if seen.span.some else None
    if seen.span.some:
        return None
    return min(seen.possible_dates(), key=lambda found: len(found[2]), default=None)


def is_quantity(name: str, seen: ColumnEvidence) -> bool:
    """Whether the numbers of a column measure something, where others are codes."""
    if not seen.span.some or not seen.numeric:
        return False
    if len(seen.others) > MOST_OTHERS and seen.rows_of_others > (1.0 - _MOSTLY) * (seen.rows - seen.missing):
        return False
    if not seen.span.whole:
        return True
    if seen.zeros or (names_code(name) and seen.span.low >= 0):
        return False
    known = 1 << max(seen.rows - seen.missing - 1, 0).bit_length()  # rounded up: one person less shall change nothing
    few = len(seen.levels) <= MOST_LEVELS and known >= ROWS_PER_CODE * len(seen.levels)
    plain = len(seen.categories) <= len(seen.levels) + len(seen.others)  # one spelling of each number
    return not (few and plain) and not (few and seen.others)


def _weighs_people(seen: ColumnEvidence) -> bool:
    """Whether numbers called ``weight`` can be no kilograms or pounds."""
    return seen.span.high > _LARGEST_BODY


def _letters(texts: Sequence[str]) -> float:
    return sum(map(len, texts)) / max(len(texts), 1)


def _number(name: str, seen: ColumnEvidence) -> Column:
    span, nullable = seen.span, seen.missing > 0 or bool(seen.others)
    if len(seen.others) > MOST_OTHERS or any(_COMMA.match(text) for text in seen.others):
        raise _no_numbers(seen)
    return Column(
        name,
        "numeric",
        low=span.low,
        high=span.high,
        nullable=nullable,
        integer=span.whole,
        absent=tuple(sorted(seen.others)),
    )


def _no_numbers(seen: ColumnEvidence) -> Exception:
    row = next(iter(seen.others.values()))
    shown = ", ".join(f"'{text}' ({rows_text(seen.where.file, [place])})" for text, place in seen.others.items())
    what = f"{shown} {'is no number' if len(seen.others) == 1 else 'are no numbers'}, and other values are"
    if any(_COMMA.match(text) for text in seen.others):
        return seen.where.below(row).fault(what, "write decimals with a point, or divide the columns by ;")
    remedy = f"correct them, or leave them empty; up to {MOST_OTHERS} different texts may stand for a missing number"
    return seen.where.below(row).fault(what, remedy)


def _date(name: str, seen: ColumnEvidence, form: str, span: Span, others: dict[str, int]) -> Iterator[Column]:
    nullable = seen.missing > 0 or bool(others)
    absent = tuple(sorted(others))
    facts: dict[str, Any] = {"form": form, "absent": absent}
    yield Column(name, "numeric", low=span.low, high=span.high, nullable=nullable, integer=span.whole, **facts)
    for cycle in cycles_of(form, span):
        yield from cycle_columns(name, cycle, **facts)


def cycles_of(form: str, span: Span) -> tuple[str, ...]:
    """The cycles in which it helps to know a date's place: those that it goes through twice."""
    if form == "clock":
        return ("day",)
    days = span.high - span.low
    long = [(not span.whole, "day"), (days >= 14.0, "week"), (days >= 730.0, "year")]
    return tuple(cycle for told, cycle in long if told)


def cycle_columns(name: str, cycle: str, *, form: str, absent: tuple[str, ...] = ()) -> Iterator[Column]:
    """Sine and cosine of a date's place in a cycle."""
    for wave in (SINE, COSINE):
        where = f"{name}, {'time of day' if cycle == 'day' else f'time of {cycle}'} ({wave})"
        yield Column(where, "numeric", low=-1.0, high=1.0, form=form, absent=absent, cycle=f"{cycle} {wave}", of=name)


def _category(name: str, seen: ColumnEvidence, *, check: bool = True) -> Column:
    if check and len(seen.categories) > MAX_CATEGORIES:
        if seen.others and seen.span.some:
            raise _no_numbers(seen)
        raise seen.where.fault(f"has more than {MAX_CATEGORIES} distinct values", "remove it from x")
    whole = all(reads_as_number(text) for text in seen.categories)
    order = class_order(seen.categories) if whole else tuple(sorted(seen.categories))
    return Column(name, "categorical", categories=order, nullable=seen.missing > 0)
