"""A release, the owner's records and held-out ones from three files, with columns matched by name and types reconciled.

A column is a number if the owner's and the held-out values are; else its texts are categories. What is written
differently on one side is brought together: numbers as text, "61.0" and "61", and intervals such as "(4000, 11000]",
"[30, 40)" or "30-39" in one file against numbers in another, which are put into the intervals.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.coded_columns import CodedColumn, common_ranks
from sfumato.core.dataset import FloatArray
from sfumato.core.errors import DataError, UsageError, unknown

Texts = npt.NDArray[np.object_]
Table = dict[str, Texts]
"""Column name → values as text, None where missing."""
Given = Any
"""A path, a DataFrame, a mapping of columns, or an array (N, columns)."""

FEWEST = 20
"""Rows of a file that can be audited."""
MOST_RELEASED = 50_000
"""Released rows that are looked at."""
_MISSING = {"", "?", "*", "na", "n/a", "nan", "null", "none", "<na>"}
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_INTERVAL = re.compile(rf"^([\[(])\s*({_NUMBER}|-?inf)\s*[,;]\s*({_NUMBER}|inf)\s*([\])])$")
_RANGE = re.compile(r"^(\d+\.?\d*)\s*(?:-|–|to|\.\.)\s*(\d+\.?\d*)$")
_FEW_VALUES = 10
"""Whole numbers with at most so many values are categories: codes, not quantities."""
NAMES = ("release", "owner", "holdout")


@dataclass(frozen=True)
class Reconciled:
    """Coded rows of the three files, what their numbers are, what was left out and what has to be said."""

    release: FloatArray
    owner: FloatArray
    holdout: FloatArray
    columns: tuple[CodedColumn, ...]
    skipped: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


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
    tables = {name: _read(value, called[name]) for name, value in given.items()}
    for name, table in tables.items():
        _check_size(_length(table), called[name], "rows")
    if id is not None:
        _check_people(tables["owner"], tables["holdout"], called, id)
    kept, skipped = _common_columns(tables, called, private, id)
    rows = _length(tables["release"])
    if rows > MOST_RELEASED:
        some = np.sort(np.random.default_rng(seed).permutation(rows)[:MOST_RELEASED])
        tables["release"] = {name: values[some] for name, values in tables["release"].items()}
        notes.append(
            f"{called['release']} has {rows:,} rows: {MOST_RELEASED:,} of them, drawn at random, are looked at"
        )
    columns: list[CodedColumn] = []
    coded: list[list[FloatArray]] = [[], [], []]
    for column in kept:
        parts = [tables[name][column] for name in NAMES]
        if all(value is None for value in (*parts[1], *parts[2])) or all(value is None for value in parts[0]):
            skipped.append((f"column {column}", "every value is missing"))
            continue
        for kind, values in _coded(column, parts, column in private, called, notes):
            columns.append(kind)
            for out, one in zip(coded, values, strict=True):
                out.append(one.astype(np.float32)[:, None])
    gone = next((name for name in private if all(name != one.name for one in columns)), None)
    if gone is not None:
        raise DataError(f"every value of the private column '{gone}' is missing: leave it out, or fill it in.")
    if not columns:
        raise DataError("no column with values is in all three files: give files with the same columns.")
    found = [np.concatenate(out, axis=1) for out in coded]
    if id is None:
        _check_apart(found[1], found[2], called, notes)
    return Reconciled(found[0], found[1], found[2], tuple(columns), tuple(skipped), tuple(notes))


def _called(value: Given, name: str) -> str:
    return (
        str(value) if isinstance(value, (str, PathLike)) else {"owner": "the owner's records"}.get(name, f"the {name}")
    )


def _length(table: Table) -> int:
    return len(next(iter(table.values()), ()))


def _check_size(rows: int, name: str, what: str) -> None:
    if rows < FEWEST:
        has = f"has {rows} {what[:-1] if rows == 1 else what}" if rows else f"has no {what}"
        raise DataError(f"{name} {has}: at least {FEWEST} are needed to measure anything.")


def _read(value: Given, name: str) -> Table:
    """Every column as text."""
    if isinstance(value, (str, PathLike)):
        return _of_file(Path(value))
    if isinstance(value, Mapping):
        return {str(key): _texts(column) for key, column in value.items()}
    if hasattr(value, "columns") and hasattr(value, "to_dict"):
        return {str(key): _texts(value[key]) for key in value.columns}
    array = np.asarray(value)
    if array.ndim < 2:
        raise UsageError(f"{name} must be a file, a table or an array of rows, got {type(value).__name__}.")
    flat = array.reshape(len(array), -1)
    return {str(place): _texts(flat[:, place]) for place in range(flat.shape[1])}


def _of_file(path: Path) -> Table:
    import pyarrow as pa

    from sfumato.data.encoding.tables import as_text
    from sfumato.data.readers.locate import open_data

    if path.suffix.lower() in (".tsv", ".tab"):
        return _of_tsv(path)
    if path.is_file() and path.stat().st_size == 0:
        raise DataError(f"{path} is empty: give a file with a header and rows.")
    if path.is_dir() or path.suffix.lower() == ".npz":
        return _of_records(path)
    opened = open_data(path)
    source = opened.reference
    batches = [batch for one in opened.chosen("all") for _, batch in one.batches(source.columns, 65_536)]
    table = pa.Table.from_batches(batches) if batches else pa.table({name: [] for name in source.columns})
    nested = [one.name for one in table.schema if pa.types.is_nested(one.type) or pa.types.is_binary(one.type)]
    if nested:
        return _of_records(path)
    return {
        name.strip(): _texts(as_text(pa.concat_arrays(table[name].chunks)) if table.num_rows else [])
        for name in table.column_names
    }


def _of_tsv(path: Path) -> Table:
    import pyarrow as pa
    import pyarrow.csv as pc

    try:
        with path.open("rb") as handle:
            names = pc.open_csv(handle, parse_options=pc.ParseOptions(delimiter="\t")).schema.names
        convert = pc.ConvertOptions(column_types={name: pa.string() for name in names}, strings_can_be_null=False)
        found = pc.read_csv(path, parse_options=pc.ParseOptions(delimiter="\t"), convert_options=convert)
    except FileNotFoundError:
        raise DataError(f"{path} does not exist: check the path.") from None
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path} is not a readable TSV file ({str(error).splitlines()[0][:160]}): write it again."
        ) from None
    return {name.strip(): _texts(found[name].to_pylist()) for name in found.column_names}


def _of_records(path: Path) -> Table:
    """Pictures, signals and lists of numbers as columns of numbers, and labels beside them."""
    from sfumato.data.loading import load

    data = load(path)
    flat = data.x.reshape(len(data), -1)
    found: Table = {f"x[{place}]": _texts(flat[:, place]) for place in range(flat.shape[1])}
    for name, codes in data.utility.items():
        number = name in data.schema.numbers
        found[name] = _texts(data.numbers(name) if number else np.array(data.schema.classes(name), dtype=object)[codes])
    return found


def _texts(values: Any) -> Texts:
    """Trimmed texts; numbers in their shortest form, so that 61 is 61.0; None where missing."""
    plain = values.to_pylist() if hasattr(values, "to_pylist") else np.asarray(values, dtype=object).tolist()
    seen: dict[Any, str | None] = {}
    out = np.empty(len(plain), dtype=object)
    for row, value in enumerate(plain):
        key = value if isinstance(value, str) else repr(value)
        if key not in seen:
            seen[key] = _text(value)
        out[row] = seen[key]
    return out


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    text = str(value).strip()
    if text.lower() in _MISSING:
        return None
    try:
        number = float(text)
    except ValueError:
        return " ".join(text.split())
    if not np.isfinite(number):
        return None
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def _common_columns(
    tables: Mapping[str, Table], called: Mapping[str, str], private: Sequence[str], id: str | None
) -> tuple[list[str], list[tuple[str, str]]]:
    """The columns that all three have, in the owner's order; and the others, with who lacks them."""
    every = list(dict.fromkeys([*tables["owner"], *(name for table in tables.values() for name in table)]))
    kept = [name for name in every if all(name in table for table in tables.values()) and name != id]
    skipped: list[tuple[str, str]] = []
    for name in every:
        lacking = [called[one] for one, table in tables.items() if name not in table]
        if lacking and name != id:
            skipped.append((f"column {name}", f"not in {' and not in '.join(lacking)}"))
    if not kept:
        theirs, ours = (", ".join(list(tables[one])[:4]) for one in NAMES[:2])
        raise DataError(
            f"{called['release']} has none of the columns of {called['owner']} (there: {theirs} …; here: {ours} …): "
            "give files with the same column names."
        )
    for name in private:
        if name not in tables["owner"]:
            raise unknown("column", name, tables["owner"])
        if name not in kept:
            without = next(called[one] for one, table in tables.items() if name not in table)
            raise DataError(f"the private column '{name}' is not in {without}: leave out --private {name}, or add it.")
    return kept, skipped


def _check_people(owner: Table, holdout: Table, called: Mapping[str, str], id: str) -> None:
    for one, name in ((owner, "owner"), (holdout, "holdout")):
        if id not in one:
            raise unknown(f"column of {called[name]}", id, one)
    shared = {value for value in owner[id] if value is not None} & {value for value in holdout[id] if value is not None}
    if shared:
        raise DataError(
            f"{len(shared):,} people (for instance '{sorted(shared)[0]}') are in {called['owner']} and in "
            f"{called['holdout']}: held out must be people whose records were not used."
        )


def _check_apart(owner: FloatArray, holdout: FloatArray, called: Mapping[str, str], notes: list[str]) -> None:
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


def _numbers(values: Texts) -> npt.NDArray[np.float64] | None:
    """As float64 with NaN for missing; None if some text is not a number."""
    found = np.full(len(values), np.nan)
    for row, value in enumerate(values):
        if value is not None:
            try:
                found[row] = float(value)
            except ValueError:
                return None
    return found


def _coded(
    column: str, parts: Sequence[Texts], private: bool, called: Mapping[str, str], notes: list[str]
) -> list[tuple[CodedColumn, list[npt.NDArray[Any]]]]:
    """A column of the three files: ranks and where they are missing, or codes."""
    numbers = [_numbers(part) for part in parts]
    known = [found for found in numbers[1:] if found is not None]
    if len(known) == 2 and numbers[0] is not None and not _codes(known):
        values = [found for found in numbers if found is not None]
        missing = [np.isnan(found) for found in values]
        ranked = [(CodedColumn(column, private=private), list[npt.NDArray[Any]](common_ranks(values)))]
        if any(gone.any() for gone in missing):
            ranked.append((CodedColumn(column, 2, companion=True), list[npt.NDArray[Any]](missing)))
        return ranked
    texts = _in_intervals(column, parts, numbers, notes)
    names = sorted({value for part in texts for value in part if value is not None})
    unseen = {v for v in texts[0] if v is not None} - {v for part in texts[1:] for v in part if v is not None}
    if unseen:
        notes.append(f"column {column}: {len(unseen):,} values are in {called['release']} alone; they match nobody")
    code = {name: place for place, name in enumerate(names)}
    absent = any(value is None for part in texts for value in part)
    codes = [np.array([len(names) if v is None else code[v] for v in part], dtype=np.float64) for part in texts]
    shown = (*names, *(["(missing)"] if absent else [])) if private else ()
    return [(CodedColumn(column, len(names) + absent, private=private, values=shown), list[npt.NDArray[Any]](codes))]


def _codes(known: Sequence[npt.NDArray[np.float64]]) -> bool:
    """Whether numbers are codes of a few categories."""
    values = np.unique(np.concatenate(known))
    values = values[~np.isnan(values)]
    return len(values) <= _FEW_VALUES and bool((values == np.rint(values)).all())


def _in_intervals(
    column: str,
    parts: Sequence[Texts],
    numbers: Sequence[npt.NDArray[np.float64] | None],
    notes: list[str],
) -> list[Texts]:
    """Where some files have intervals and others numbers, the numbers are put into the intervals."""
    intervals = {text: ends for part in parts for text in set(part) if text is not None and (ends := _ends(text))}
    if not intervals or all(
        found is None and not _has_numbers(part) for part, found in zip(parts, numbers, strict=True)
    ):
        return list(parts)
    notes.append(f"column {column}: numbers are put into the {len(intervals)} intervals that another file has")
    return [_placed(part, intervals) for part in parts]


def _has_numbers(part: Texts) -> bool:
    return any(value is not None and _is_number(value) for value in set(part))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _ends(text: str) -> tuple[float, float, bool, bool] | None:
    """Lowest and highest value of an interval, and whether these are in it."""
    found = _INTERVAL.match(text)
    if found:
        return float(found[2]), float(found[3]), found[1] == "[", found[4] == "]"
    plain = _RANGE.match(text)
    return (float(plain[1]), float(plain[2]), True, True) if plain else None


def _placed(part: Texts, intervals: Mapping[str, tuple[float, float, bool, bool]]) -> Texts:
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
