"""Any table as text, column by column, without a guess at types: what several files are compared by.

CSV, TSV and other delimited files (comma, semicolon, tab or bar, as the header says), Parquet, npz, folders of
pictures, DataFrames, columns by name and arrays. Cells that are pictures or long lists of numbers stay numbers
(``wide``).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray
from sfumato.core.errors import DataError, UsageError

Texts = npt.NDArray[np.object_]
"""The values of a column as text, None where missing."""
Given = Any
"""A path, a DataFrame, a mapping of columns, or an array (N, columns)."""

DELIMITED = (".csv", ".tsv", ".tab", ".txt")
_DELIMITERS = (",", ";", "\t", "|")
_TABBED = (".tsv", ".tab")
_MISSING = {"", "?", "*", "na", "n/a", "nan", "null", "none", "<na>"}
_TRUTH = {"true": "yes", "false": "no"}
"""As Parquet's booleans are written, so that a CSV file says the same."""
_DECIMAL_COMMA = re.compile(r"^[-+]?\d*(?:,\d+)?$")
_MARKS = re.compile(r"[\s._-]+")
_MOST_PLAIN = 32
"""Cells of at most so many numbers become as many columns."""
_BRIEF = 160


@dataclass(frozen=True)
class PlainTable:
    """Columns of text, and columns whose cells are many numbers, (N, width)."""

    columns: dict[str, Texts]
    wide: dict[str, FloatArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter((*self.columns.values(), *self.wide.values())), ()))

    @property
    def names(self) -> list[str]:
        return [*self.columns, *self.wide]

    def take(self, rows: npt.NDArray[np.integer]) -> PlainTable:
        return PlainTable(
            {name: one[rows] for name, one in self.columns.items()},
            {name: one[rows] for name, one in self.wide.items()},
        )

    def named_like(self, names: Sequence[str]) -> tuple[PlainTable, dict[str, str]]:
        """With columns called as in ``names`` where they differ in capitals, spaces, dashes, dots or underscores alone,
        and what was renamed."""
        free = _once(name for name in names if name not in self.names)
        mine = _once(name for name in self.names if name not in names)
        new = {name: free[key] for key, name in mine.items() if key in free}
        columns = {new.get(name, name): one for name, one in self.columns.items()}
        wide = {new.get(name, name): one for name, one in self.wide.items()}
        return PlainTable(columns, wide), new


def _once(names: Iterable[str]) -> dict[str, str]:
    """The names by what is left of them without capitals and marks, where that is left of one of them alone."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(_MARKS.sub("", name).casefold(), []).append(name)
    return {key: alike[0] for key, alike in found.items() if key and len(alike) == 1}


def plain_table(value: Given, name: str) -> PlainTable:
    """Read what was given; ``name`` is what messages call it.

    Raises:
        UsageError: It is no table.
        DataError: A file cannot be read; the message says which and why.
    """
    if isinstance(value, (str, PathLike)):
        return _of_file(Path(value))
    if isinstance(value, Mapping):
        return _of_arrays({str(key): column for key, column in value.items()}, name)
    if hasattr(value, "columns") and hasattr(value, "to_dict"):
        return _of_arrays({str(key): value[key] for key in value.columns}, name)
    array = np.asarray(value)
    if array.ndim < 2:
        raise UsageError(f"{name} must be a file, a table or an array of rows, got {type(value).__name__}.")
    flat = array.reshape(len(array), -1)
    if flat.shape[1] > _MOST_PLAIN and flat.dtype.kind in "biuf":
        return PlainTable({}, {"x": flat.astype(np.float32)})
    return PlainTable({str(place): texts(flat[:, place]) for place in range(flat.shape[1])})


def _of_arrays(columns: Mapping[str, Any], name: str) -> PlainTable:
    plain: dict[str, Texts] = {}
    wide: dict[str, FloatArray] = {}
    for key, values in columns.items():
        array = np.asarray(values)
        if array.ndim > 1 and array.dtype.kind in "biuf":
            _spread(key, array.reshape(len(array), -1), plain, wide)
        else:
            plain[key] = texts(values)
    lengths = {key: len(values) for key, values in {**plain, **wide}.items()}
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"'{key}' {length}" for key, length in list(lengths.items())[:6])
        raise DataError(f"{name}: the columns are not equally long ({sizes}): give one value for each record.")
    return PlainTable(plain, wide)


def _spread(key: str, flat: Any, plain: dict[str, Texts], wide: dict[str, FloatArray]) -> None:
    if flat.shape[1] > _MOST_PLAIN:
        wide[key] = flat.astype(np.float32)
        return
    for place in range(flat.shape[1]):
        plain[f"{key}[{place}]"] = texts(flat[:, place])


def _of_file(path: Path) -> PlainTable:
    import pyarrow as pa

    from sfumato.data.encoding.tables import as_text
    from sfumato.data.readers.locate import open_data

    if not path.exists():
        raise DataError(f"{path} does not exist: check the path.")
    if path.suffix.lower() in DELIMITED:
        table, delimiter = delimited(path)
        return PlainTable({key: _read_texts(table[key].to_pylist(), delimiter) for key in table.column_names})
    if path.suffix.lower() == ".npz":
        return _of_npz(path)
    if path.is_dir():
        return _of_records(path)
    opened = open_data(path)
    source = opened.reference
    batches = [batch for one in opened.chosen("all") for _, batch in one.batches(source.columns, 65_536)]
    table = pa.Table.from_batches(batches) if batches else pa.table({name: [] for name in source.columns})
    if any(pa.types.is_nested(one.type) or pa.types.is_binary(one.type) for one in table.schema):
        return _of_records(path)
    return PlainTable(
        {
            name.strip(): texts(as_text(pa.concat_arrays(table[name].chunks)) if table.num_rows else [])
            for name in table.column_names
        }
    )


def delimited(path: Path) -> tuple[Any, str]:
    """A delimited file as an Arrow table of untouched texts, and its delimiter: the one that the header has most of.

    Raises:
        DataError: It is missing, empty, or cannot be read.
    """
    import pyarrow as pa
    import pyarrow.csv as pc

    try:
        with path.open("rb") as handle:
            first = handle.readline().decode(errors="replace")
        if not path.stat().st_size:
            raise DataError(f"{path} is empty: give a file with a header and rows.")
        bare = re.sub(r'"[^"]*"', "", first)
        delimiter = "\t" if path.suffix.lower() in _TABBED else max(_DELIMITERS, key=bare.count)
        parse = pc.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        with path.open("rb") as handle:
            names = pc.open_csv(handle, parse_options=parse).schema.names
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise DataError(f"{path}: two columns are called '{twice}': rename one of them.")
        convert = pc.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
        found = pc.read_csv(path, parse_options=parse, convert_options=convert)
    except UnicodeDecodeError:
        raise DataError(f"{path} cannot be read as a table (it is not UTF-8): save it as UTF-8.") from None
    except (pa.ArrowException, OSError) as error:
        why = (str(error).strip().splitlines() or [type(error).__name__])[0][:_BRIEF].rstrip(".")
        raise DataError(f"{path} cannot be read as a table ({why}): give a UTF-8 file with a header.") from None
    return found.rename_columns([name.strip() for name in found.column_names]), delimiter


def write_delimited(path: Path, columns: Mapping[str, list[str]], delimiter: str) -> None:
    """Untouched texts as a delimited file."""
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, delimiter=delimiter, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _read_texts(values: list[str], delimiter: str) -> Texts:
    """Where a comma does not divide the cells, it may divide a number."""
    if delimiter != ",":
        known = [value.strip() for value in values if value.strip().lower() not in _MISSING]
        if any("," in value for value in known) and all(_DECIMAL_COMMA.match(value) for value in known):
            return texts([value.replace(",", ".") for value in values])
    return texts(values)


def _of_npz(path: Path) -> PlainTable:
    from sfumato.data.readers.npz import NpzSource

    NpzSource(path)  # refuses what is damaged, too large or no array
    with np.load(path, allow_pickle=False) as kept:
        return _of_arrays({name: kept[name] for name in kept.files}, str(path))


def _of_records(path: Path) -> PlainTable:
    """Pictures, signals and lists of numbers as one wide column, and labels beside them."""
    from sfumato.data.loading import load

    data = load(path)
    plain: dict[str, Texts] = {}
    wide: dict[str, FloatArray] = {}
    _spread("x", data.x.reshape(len(data), -1), plain, wide)
    for name, codes in data.utility.items():
        number = name in data.schema.numbers
        plain[name] = texts(data.numbers(name) if number else np.array(data.schema.classes(name), dtype=object)[codes])
    return PlainTable(plain, wide)


def texts(values: Any) -> Texts:
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
    if text.lower() in _TRUTH:
        return _TRUTH[text.lower()]
    try:
        number = float(text)
    except ValueError:
        return " ".join(text.split())
    if not np.isfinite(number):
        return None
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)
