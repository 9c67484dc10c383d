"""A release, the owner's records and held-out ones from three files, with columns matched by name and types reconciled.

A column is a number if the owner's and the held-out values are; else its texts are categories (``column_codes``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike

import numpy as np

from sfumato.core.coded_columns import CodedColumn
from sfumato.core.dataset import FloatArray
from sfumato.core.errors import DataError, unknown
from sfumato.data.column_codes import ColumnCoder, coder_of, numbers_in
from sfumato.data.plain_tables import Given, PlainTable, Texts, plain_table

FEWEST = 20
"""Rows of a file that can be audited."""
MOST_RELEASED = 50_000
"""Released rows that are looked at."""
NAMES = ("release", "owner", "holdout")
_SHOWN = 4
_TELLING = 0.05
Tables = Mapping[str, PlainTable]
Called = Mapping[str, str]


@dataclass(frozen=True)
class Reconciled:
    """Coded rows of the three files, what their numbers are, what was left out and what has to be said.

    ``people`` are the names of the owner's and of the held-out people, row by row, where a column names them.
    """

    release: FloatArray
    owner: FloatArray
    holdout: FloatArray
    columns: tuple[CodedColumn, ...]
    skipped: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    coders: tuple[ColumnCoder, ...] = ()
    people: tuple[Texts, Texts] | None = None

    def another(self, release: Given, name: str, seed: int) -> FloatArray:
        """Rows of another release by the same maker, coded alike.

        Raises:
            DataError: It cannot be read, is too small, or lacks a column that the audited release has.
        """
        table, _ = plain_table(release, name).named_like([coder.source for coder in self.coders])
        _check_size(len(table), name, "row", "rows")
        lacking = next((coder.source for coder in self.coders if coder.source not in table.names), None)
        if lacking is not None:
            raise DataError(
                f"{name} has no column '{lacking}', which the audited release has: give the command that made it."
            )
        return _coded(self.coders, _at_most(table, seed))


def reconcile(
    release: Given, owner: Given, holdout: Given, *, private: Sequence[str] = (), id: str | None = None, seed: int = 0
) -> Reconciled:
    """Read the three and code their common columns alike.

    Args:
        release, owner, holdout: A CSV, TSV, Parquet or npz file, a folder of pictures, a DataFrame, columns by name, or
            an array (N, columns).
        private: The columns that nobody may infer.
        id: A column that names people; it is no part of a row.
        seed: Which rows of a very large release are looked at.

    Raises:
        DataError: A file cannot be read, is too small, or lacks what the others have; or held-out people are also among
            the owner's.
    """
    notes: list[str] = []
    given = dict(zip(NAMES, (release, owner, holdout), strict=True))
    called = {name: _called(value, name) for name, value in given.items()}
    tables = {name: plain_table(value, called[name]) for name, value in given.items()}
    for name in ("release", "holdout"):
        tables[name], new = tables[name].named_like(tables["owner"].names)
        notes += [f"column {old} of {called[name]} is taken for {one}" for old, one in new.items()]
    for name, table in tables.items():
        _check_size(len(table), called[name], "row", "rows")
    people = None if id is None else _people(tables["owner"], tables["holdout"], called, id)
    if people is not None:
        for names, name in zip(people, NAMES[1:], strict=True):
            _check_size(len(set(names)), called[name], "person", "people")
        notes += _named_in_release(tables["release"], people, called, str(id))
    kept, skipped = _common_columns(tables, called, private, id)
    rows = len(tables["release"])
    if rows > MOST_RELEASED:
        tables["release"] = _at_most(tables["release"], seed)
        notes.append(
            f"{called['release']} has {rows:,} rows: {MOST_RELEASED:,} of them, drawn at random, are looked at"
        )
    coders: list[ColumnCoder] = []
    parts = [tables[name] for name in NAMES]
    for column in kept:
        told = _says_nothing(column, parts)
        if told is None and column not in private and _counts_rows(column, parts):
            told = "it counts rows or people, which tells the files apart and nothing about anybody"
            notes.append(
                f"column {column} counts rows or people: it is left out; if it names people, give it with --id"
            )
        if told is not None:
            skipped.append((f"column {column}", told))
            continue
        if people is None and _names_rows(column, parts):
            notes.append(f"column {column} has another text in every row: if it names people, give it with --id")
        coders.append(coder_of(column, parts, called["release"], notes, private=column in private))
    columns = tuple(one for coder in coders for one in coder.columns)
    gone = next((name for name in private if all(name != one.name for one in columns)), None)
    if gone is not None:
        why = next(reason for column, reason in skipped if column == f"column {gone}")
        raise DataError(f"{why} in the private column '{gone}': leave it out, or fill it in.")
    if not columns:
        raise DataError("no column with several values is in all three files: give files with the same columns.")
    found = [_coded(coders, part) for part in parts]
    if people is None:
        _check_apart(found[1], found[2], called, notes)
    notes += _exchanged(found, called)
    return Reconciled(found[0], found[1], found[2], columns, tuple(skipped), tuple(notes), tuple(coders), people)


def _coded(coders: Sequence[ColumnCoder], table: PlainTable) -> FloatArray:
    return np.stack([one for coder in coders for one in coder(table)], axis=1).astype(np.float32)


def _at_most(table: PlainTable, seed: int) -> PlainTable:
    rows = len(table)
    if rows <= MOST_RELEASED:
        return table
    return table.take(np.sort(np.random.default_rng(seed).permutation(rows)[:MOST_RELEASED]))


def _says_nothing(column: str, parts: Sequence[PlainTable]) -> str | None:
    """Why the column cannot tell people apart: no values in the release or for anybody, or one for everybody."""
    if column in parts[0].wide:
        return None
    values = [set(part.columns[column]) for part in parts]
    if values[0] == {None} or values[1] | values[2] == {None}:
        return "every value is missing"
    return "everybody has the same value" if len(values[1] | values[2]) == 1 else None


def _counts_rows(column: str, parts: Sequence[PlainTable]) -> bool:
    """Whether every record has another whole number there, and those of both files leave no great gaps.

    A row of numbers that was begun with the owner's records and ends with the held-out ones would tell members from
    strangers by where the file was cut, whatever was released.
    """
    if column in parts[0].wide or not _all_differ(column, parts):
        return False
    both = numbers_in(np.concatenate([part.columns[column] for part in parts[1:]]))
    whole = not np.isnan(both).any() and bool((both == np.rint(both)).all())
    return whole and float(np.ptp(both)) < 2 * len(both)


def _names_rows(column: str, parts: Sequence[PlainTable]) -> bool:
    """Whether every record has another text there that is no number."""
    if column in parts[0].wide or not _all_differ(column, parts):
        return False
    return any(np.isnan(numbers_in(part.columns[column])).all() for part in parts[1:])


def _all_differ(column: str, parts: Sequence[PlainTable]) -> bool:
    sides = [part.columns[column].tolist() for part in parts[1:]]
    return not any(None in side or len(set(side)) < len(side) for side in sides)


def _called(value: Given, name: str) -> str:
    return (
        str(value) if isinstance(value, (str, PathLike)) else {"owner": "the owner's records"}.get(name, f"the {name}")
    )


def _check_size(count: int, name: str, one: str, several: str) -> None:
    if count < FEWEST:
        has = f"has {count} {one if count == 1 else several}" if count else f"has no {several}"
        raise DataError(f"{name} {has}: at least {FEWEST} are needed to measure anything.")


def _common_columns(
    tables: Tables, called: Called, private: Sequence[str], id: str | None
) -> tuple[list[str], list[tuple[str, str]]]:
    """The columns that all three have, in the owner's order; and the others, with who lacks them."""
    every = list(dict.fromkeys([*tables["owner"].names, *(name for table in tables.values() for name in table.names)]))
    kept = [name for name in every if all(name in table.names for table in tables.values()) and name != id]
    skipped: list[tuple[str, str]] = []
    if "" in kept:  # as pandas writes the index of a table
        kept.remove("")
        skipped.append(("a column without a name", "it counts rows, most likely"))
    for name in every:
        lacking = [called[one] for one, table in tables.items() if name not in table.names]
        if lacking and name != id:
            skipped.append((f"column {name}", f"not in {' and not in '.join(lacking)}"))
    if not kept:
        raise DataError(
            f"{called['release']} has none of the columns of {called['owner']} (there: {_some(tables['release'])}; "
            f"here: {_some(tables['owner'])}): give files with the same column names."
        )
    for name in private:
        if name == id:
            raise DataError(f"'{name}' cannot name the people and be private as well: leave it out of one of the two.")
        if name not in tables["owner"].names:
            raise unknown("column", name, tables["owner"].names)
        if name not in kept:
            without = next(called[one] for one, table in tables.items() if name not in table.names)
            raise DataError(f"the private column '{name}' is not in {without}: leave out --private {name}, or add it.")
    for name in kept:
        _check_width(name, tables, called)
    return kept, skipped


def _some(table: PlainTable) -> str:
    return ", ".join(table.names[:_SHOWN]) + (" …" if len(table.names) > _SHOWN else "")


def _check_width(name: str, tables: Tables, called: Called) -> None:
    """Pictures have to be of one size."""
    widths = {called[one]: table.wide[name].shape[1] if name in table.wide else 1 for one, table in tables.items()}
    if len(set(widths.values())) > 1:
        sizes = ", ".join(f"{width:,} in {one}" for one, width in widths.items())
        raise DataError(f"a cell of '{name}' has another number of values in each file ({sizes}): make them alike.")


def _people(owner: PlainTable, holdout: PlainTable, called: Called, id: str) -> tuple[Texts, Texts]:
    """Who each row belongs to; a row that names nobody is a person of its own."""
    for one, name in ((owner, "owner"), (holdout, "holdout")):
        if id not in one.columns:
            raise unknown(f"column of {called[name]}", id, one.names)
    sides = [_named(one.columns[id], part) for one, part in ((owner, "owner"), (holdout, "held out"))]
    shared = set(sides[0]) & set(sides[1])
    if shared:
        people = "1 person" if len(shared) == 1 else f"{len(shared):,} people"
        raise DataError(
            f"{people} (for instance '{min(shared)}') {'is' if len(shared) == 1 else 'are'} in {called['owner']} and "
            f"in {called['holdout']}: held out must be people whose records were not used."
        )
    return sides[0], sides[1]


def _named_in_release(release: PlainTable, people: tuple[Texts, Texts], called: Called, id: str) -> list[str]:
    """A release that names the owner's people gives them away whatever else it says: no attack asks for that."""
    if id not in release.columns:
        return []
    there = set(release.columns[id]) - {None}
    found, of = len(there & set(people[0])), len(set(people[0]))
    strangers = len(there & set(people[1]))
    if not found:
        return []
    return [
        f"{called['release']} has the column '{id}', with {found:,} of the owner's {of:,} people and {strangers:,} "
        "held-out ones: names are no part of the audit, so take that column out of the release"
    ]


def _exchanged(found: Sequence[FloatArray], called: Called) -> list[str]:
    """Whether the release holds held-out people's rows rather than the owner's."""
    released, owner, holdout = ({row.tobytes() for row in part} for part in found)
    shares = [len(side & released) / max(1, len(side)) for side in (owner, holdout)]
    if shares[1] <= 2.0 * shares[0] + _TELLING:
        return []
    return [
        f"{called['release']} holds {shares[1]:.0%} of the different rows of {called['holdout']} and {shares[0]:.0%} "
        f"of those of {called['owner']}: were the two exchanged?"
    ]


def _named(values: Texts, part: str) -> Texts:
    return np.array([value or f"{part}, row {row}" for row, value in enumerate(values, 1)], dtype=object)


def _check_apart(owner: FloatArray, holdout: FloatArray, called: Called, notes: list[str]) -> None:
    """Held-out rows that are also the owner's: more than chance makes is an error, some are said."""
    known: dict[bytes, int] = {}
    for row in owner:
        known[row.tobytes()] = known.get(row.tobytes(), 0) + 1
    shared = sum(row.tobytes() in known for row in holdout)
    if not shared:
        return
    by_chance = sum(count for count in known.values() if count > 1) / len(owner)
    allowed = by_chance + 3.0 * np.sqrt(by_chance * (1.0 - by_chance) / len(holdout)) + 0.01
    said = f"{shared:,} of the {len(holdout):,} rows of {called['holdout']} are also in {called['owner']}"
    if shared / len(holdout) > allowed:
        raise DataError(
            f"{said}: held out must be people whose records were not used; remove them from one of the two."
        )
    notes.append(f"{said}, no more than chance makes: they stay")
