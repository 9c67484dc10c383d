"""Columns of several files as numbers, alike in all: ranks of numbers, codes of categories, components of wide cells.

What is written differently on one side is brought together: numbers as text, "61.0" and "61", and intervals such as
"(4000, 11000]", "[30, 40)" or "30-39" in one file against numbers in another, which are put into the intervals; and
"$48,800.00" or "76.9 kg" in one against 48800 or 76.9 in another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.coded_columns import CodedColumn, Ranks
from sfumato.core.dataset import FloatArray
from sfumato.data.plain_tables import PlainTable, Texts, texts

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_INTERVAL = re.compile(rf"^([\[(])\s*({_NUMBER}|-?inf)\s*[,;]\s*({_NUMBER}|inf)\s*([\])])$")
_RANGE = re.compile(r"^(\d+\.?\d*)\s*(?:-|–|to|\.\.)\s*(\d+\.?\d*)$")
_WRITTEN = re.compile(r"^[^\d.,+-]*([-+]?\d[\d.,' ]*(?:[eE][-+]?\d+)?)[^\d]*$")
_THOUSANDS = re.compile(r"^[-+]?\d{1,3}(?:([,' ])\d{3})(?:\1\d{3})*(?:\.\d+)?$")
_DAY = re.compile(r"^\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}.*)?$")
_FEW_VALUES = 10
"""Whole numbers with at most so many values are categories: codes, not quantities. If a release has 1.5 between 1 and
2, its maker took them for quantities, and an attacker who does the same finds more."""
_COMPONENTS = 16
"""Numbers that stand for a picture or another wide cell."""
_SOME = 5_000
"""Released cells from which the components are learnt."""

Ends = tuple[float, float, bool, bool]
Doubles = npt.NDArray[np.float64]
Coded = list[npt.NDArray[Any]]


@dataclass(frozen=True)
class NumberCoder:
    """Ranks of numbers, or of days, and where they are missing if any is."""

    column: CodedColumn
    rank: Ranks
    companion: bool
    days: bool = False
    written: bool = False

    @property
    def source(self) -> str:
        return self.column.name

    @property
    def columns(self) -> list[CodedColumn]:
        return [self.column, *([CodedColumn(self.column.name, 2, companion=True)] if self.companion else [])]

    def __call__(self, table: PlainTable) -> Coded:
        part = _plain(table.columns[self.column.name], self.written)
        numbers = _days(part) if self.days else numbers_in(part)
        return [self.rank(numbers), *([np.isnan(numbers)] if self.companion else [])]


@dataclass(frozen=True)
class CategoryCoder:
    """Codes by ``code``; a missing value and one that nobody of the owner's or held-out people has match nobody."""

    column: CodedColumn
    code: Mapping[str, int]
    intervals: Mapping[str, Ends]
    written: bool = False

    @property
    def source(self) -> str:
        return self.column.name

    @property
    def columns(self) -> list[CodedColumn]:
        return [self.column]

    def __call__(self, table: PlainTable) -> Coded:
        part = _plain(table.columns[self.column.name], self.written)
        placed = _placed(part, self.intervals) if self.intervals else part
        count = len(self.code)
        return [np.array([count if v is None else self.code.get(v, count + 1) for v in placed], dtype=np.float64)]


@dataclass(frozen=True)
class ComponentCoder:
    """Ranks of the main components of a wide column."""

    source: str
    mean: FloatArray
    basis: FloatArray
    ranked: tuple[Ranks, ...]

    @property
    def columns(self) -> list[CodedColumn]:
        return [CodedColumn(f"{self.source}, component {number}") for number in range(1, len(self.ranked) + 1)]

    def __call__(self, table: PlainTable) -> Coded:
        found = _components(table.wide[self.source], self.mean, self.basis)
        return [rank(found[:, place]) for place, rank in enumerate(self.ranked)]


ColumnCoder = NumberCoder | CategoryCoder | ComponentCoder


def coder_of(
    column: str, tables: Sequence[PlainTable], release: str, notes: list[str], *, private: bool = False
) -> ColumnCoder:
    """How a column of the release, the owner's and the held-out records is coded; ``notes`` get what has to be said."""
    if column in tables[0].wide:
        return _component_coder(column, [table.wide[column] for table in tables])
    parts = [table.columns[column] for table in tables]
    written = _differently_written(parts)
    if written is not None:
        notes.append(f"column {column}: '{written}' and the like are read as numbers, as in another file")
        parts = [_plain(part, True) for part in parts]
    numbers = [_numbers(part) for part in parts]
    values = [found for found in numbers if found is not None]
    days = all(_are_days(part) for part in parts)
    if days:
        values = [_days(part) for part in parts]
    if days or (len(values) == len(parts) and not _codes(values)):
        missing = any(np.isnan(found).any() for found in values)
        return NumberCoder(CodedColumn(column, private=private), Ranks.of(values), missing, days, written is not None)
    intervals = _intervals(column, parts, numbers, notes)
    placed = [_placed(part, intervals) for part in parts] if intervals else parts
    names = sorted({value for part in placed for value in part if value is not None})
    unseen = {v for v in placed[0] if v is not None} - {v for part in placed[1:] for v in part if v is not None}
    if unseen:
        many = f"{len(unseen):,} values are" if len(unseen) > 1 else "1 value is"
        notes.append(
            f"column {column}: {many} in {release} alone; {'they match' if len(unseen) > 1 else 'it matches'} nobody"
        )
    absent = any(value is None for part in placed for value in part)
    shown = (*names, *(["(missing)"] if absent else [])) if private else ()
    kind = CodedColumn(column, len(names) + absent, private=private, values=shown)
    return CategoryCoder(kind, {name: place for place, name in enumerate(names)}, intervals, written is not None)


def _component_coder(name: str, parts: Sequence[FloatArray]) -> ComponentCoder:
    """By the release alone: components learnt from held-out people fit these better than the owner's, which would tell
    the two apart whatever was released."""
    from sklearn.decomposition import PCA

    some = parts[0][:_SOME]
    few = min(_COMPONENTS, *some.shape)
    with np.errstate(invalid="ignore"):  # shares of a variance that may be 0
        narrow = PCA(few, svd_solver="randomized", random_state=0).fit(some)
    mean, basis = narrow.mean_.astype(np.float32), narrow.components_.T.astype(np.float32)
    found = [_components(part, mean, basis) for part in parts]
    ranked = tuple(Ranks.of([part[:, place] for part in found]) for place in range(few))
    return ComponentCoder(name, mean, basis, ranked)


def _components(cells: FloatArray, mean: FloatArray, basis: FloatArray) -> Doubles:
    """Rounded, so that equal cells have equal components whatever stands beside them in a file."""
    return np.round((cells - mean).astype(np.float64) @ basis.astype(np.float64), 6)


def numbers_in(values: Texts) -> Doubles:
    """As float64; NaN for what is missing or no number."""
    found = np.full(len(values), np.nan)
    for row, value in enumerate(values):
        if value is not None and _is_number(value):
            found[row] = float(value)
    return found


def _numbers(values: Texts) -> Doubles | None:
    """As float64 with NaN for missing; None if some text is not a number."""
    found = np.full(len(values), np.nan)
    for row, value in enumerate(values):
        if value is not None:
            try:
                found[row] = float(value)
            except ValueError:
                return None
    return found


def _differently_written(parts: Sequence[Texts]) -> str | None:
    """A value that one file writes with a unit, a currency or thousands apart, a number in another file; else None."""
    plain = [_numbers(part) is not None for part in parts]
    numbers = any(bare and any(v is not None for v in part) for part, bare in zip(parts, plain, strict=True))
    if all(plain) or not numbers:
        return None
    known: set[str] = {
        value for part, bare in zip(parts, plain, strict=True) if not bare for value in part if value is not None
    }
    if any(_ends(value) or _written(value) is None for value in known):
        return None
    return min(str(value) for value in known if not _is_number(value))


def _plain(part: Texts, written: bool) -> Texts:
    """The texts, or where they are ``written`` numbers these in their shortest form."""
    if not written:
        return part
    known = {value: _written(value) for value in set(part) if value is not None}
    return texts([known.get(value) for value in part])


def _written(text: str) -> float | None:
    """48800 for "$48,800.00", 76.9 for "76.9 kg" and "76,9"; None where no number, or more than one, stands there."""
    if _is_number(text):
        return float(text)
    found = _WRITTEN.match(text)
    if not found:
        return None
    digits = found[1].strip(" .,'")
    grouped = _THOUSANDS.match(digits)
    bare = digits.replace(grouped[1], "") if grouped else digits.replace(",", ".")
    return float(bare) if _is_number(bare) else None


def _are_days(values: Texts) -> bool:
    """Whether all are dates, with or without a time."""
    known = {value for value in values if value is not None}
    return bool(known) and all(_DAY.match(value) and _day(value) is not None for value in known)


def _days(values: Texts) -> Doubles:
    """Days since 1970; NaN for what is missing or no date."""
    found = {value: _day(value) for value in set(values) if value is not None}
    return np.array([np.nan if (day := found.get(value)) is None else day for value in values], dtype=np.float64)


def _day(value: str) -> float | None:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (moment.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds() / 86_400.0


def _codes(known: Sequence[Doubles]) -> bool:
    """Whether numbers are codes of a few categories."""
    values = np.unique(np.concatenate(known))
    values = values[~np.isnan(values)]
    return len(values) <= _FEW_VALUES and bool((values == np.rint(values)).all())


def _intervals(
    column: str, parts: Sequence[Texts], numbers: Sequence[Doubles | None], notes: list[str]
) -> dict[str, Ends]:
    """The intervals into which numbers are put, where some files have intervals and others numbers; else none."""
    intervals = {text: ends for part in parts for text in set(part) if text is not None and (ends := _ends(text))}
    if not intervals or all(
        found is None and not _has_numbers(part) for part, found in zip(parts, numbers, strict=True)
    ):
        return {}
    notes.append(f"column {column}: numbers are put into the {len(intervals)} intervals that another file has")
    return intervals


def _has_numbers(part: Texts) -> bool:
    return any(value is not None and _is_number(value) for value in set(part))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _ends(text: str) -> Ends | None:
    """Lowest and highest value of an interval, and whether these are in it."""
    found = _INTERVAL.match(text)
    if found:
        return float(found[2]), float(found[3]), found[1] == "[", found[4] == "]"
    plain = _RANGE.match(text)
    return (float(plain[1]), float(plain[2]), True, True) if plain else None


def _placed(part: Texts, intervals: Mapping[str, Ends]) -> Texts:
    known: dict[str, str] = {}
    out = part.copy()
    for row, value in enumerate(part):
        if value is None or value in intervals or not _is_number(value):
            continue
        if value not in known:
            number = float(value)
            inside = (
                text
                for text, (low, high, closed_low, closed_high) in intervals.items()
                if (low < number or (closed_low and low == number))
                and (number < high or (closed_high and number == high))
            )
            known[value] = next(inside, value)
        out[row] = known[value]
    return out
