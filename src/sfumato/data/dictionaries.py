"""Data dictionaries: what a publisher says of each column, before anybody looks at a record.

Read are a JSON object of columns with their ``values`` (as NIST's and the US census excerpts have), a codebook as a
delimited file, a Frictionless table schema or data package, and a Croissant description.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeGuard

from sfumato.core.documents import json_value
from sfumato.core.errors import DataError
from sfumato.data.label_expressions import is_number
from sfumato.data.readers.dialect import dialect_of, is_delimited

MOST_BYTES = 2**24
_COLUMN = ("name", "variable", "variable name", "column", "field", "field name", "var", "item")
_TYPE = ("type", "kind", "data type", "format", "value type")
_LOW = ("min", "minimum", "low", "lowest", "from", "range min", "text validation min")
_HIGH = ("max", "maximum", "high", "highest", "to", "range max", "text validation max")
_VALUES = (
    "values",
    "codes",
    "categories",
    "levels",
    "choices",
    "allowed values",
    "value labels",
    "enum",
    "value",
    "code",
)
_ABSENT = ("missing", "missing values", "missing codes", "na", "not applicable")
_NUMERIC = ("int", "integer", "number", "numeric", "float", "double", "decimal", "real", "year")
_WHOLE = ("int", "integer", "year")
_DATES = ("date", "datetime", "timestamp", "time")
_NOT_APPLICABLE = re.compile(r"^(n/?a\b|not applicable|missing|unknown|not available)", re.IGNORECASE)
_PAIR = re.compile(r"^\s*(?P<code>[^=:]*?)\s*[=:]\s*(?P<label>.+)$")
_CROISSANT_NUMBERS = ("integer", "float", "number", "int64", "int32", "float64", "float32")


@dataclass(frozen=True)
class DictionaryEntry:
    """One column as the publisher describes it; ``why`` says what is lacking where nothing can be declared."""

    name: str
    kind: str = ""
    low: float | None = None
    high: float | None = None
    codes: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    integer: bool = False
    nullable: bool = False
    dates: tuple[str, str] | None = None
    why: str = ""


def read_dictionary(path: Path) -> list[DictionaryEntry]:
    """Every column that the dictionary names, in its order.

    Raises:
        DataError: The file is missing, too large, or none of these.
    """
    if not path.is_file():
        raise DataError(f"{path} does not exist: name a data dictionary.")
    if path.stat().st_size > MOST_BYTES:
        raise DataError(f"{path} is larger than {MOST_BYTES >> 20} MB: give the dictionary, not the data.")
    if is_delimited(path):
        found = list(_codebook(path))
    else:
        try:
            content = json_value(path.read_bytes(), str(path))
        except UnicodeDecodeError:
            raise DataError(f"{path} is neither JSON nor a delimited codebook.") from None
        found = list(_of_json(content, path))
    if not found:
        raise DataError(
            f"{path} names no columns: give a data dictionary, a codebook, or a Frictionless or Croissant file."
        )
    return found


def _of_json(content: Any, path: Path) -> Iterator[DictionaryEntry]:
    if not isinstance(content, dict):
        raise DataError(f"{path}: a data dictionary is a JSON object, one entry for each column.")
    if "recordSet" in content:
        yield from _croissant(content)
    elif isinstance(content.get("fields"), list):
        yield from _frictionless(content)
    elif isinstance(content.get("resources"), list):
        for resource in content["resources"]:
            yield from _frictionless(resource.get("schema", {}) if isinstance(resource, dict) else {})
    else:
        for name, about in content.items():
            if isinstance(about, dict):
                yield _valued(str(name), about.get("values", {}))


def _valued(name: str, values: Any) -> DictionaryEntry:
    """A column by its values: codes with what they mean, and ``min`` and ``max`` of a quantity."""
    if isinstance(values, Sequence) and not isinstance(values, str):
        values = {str(code): "" for code in values}
    if not isinstance(values, Mapping) or not values:
        return DictionaryEntry(name, why="the dictionary lists no values")
    low, high = (values.get(end) for end in ("min", "max"))
    meant = {str(code): str(label) for code, label in values.items() if code not in ("min", "max")}
    if not _is_number(low) or not _is_number(high):
        return DictionaryEntry(name, "categorical", codes=tuple(meant))
    return _quantity(name, float(low), float(high), meant, whole=isinstance(low, int) and isinstance(high, int))


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _quantity(name: str, low: float, high: float, codes: Mapping[str, str], *, whole: bool) -> DictionaryEntry:
    """A number; codes beside its range that are numbers widen it, and texts stand for a missing number."""
    numbers = [float(code) for code in codes if is_number(code)]
    absent = tuple(code for code in codes if not is_number(code))
    whole = whole and all(number.is_integer() for number in numbers)
    return DictionaryEntry(
        name,
        "numeric",
        min([low, *numbers]),
        max([high, *numbers]),
        absent=absent,
        integer=whole,
        nullable=bool(absent),
    )


def _frictionless(schema: Mapping[str, Any]) -> Iterator[DictionaryEntry]:
    missing = tuple(str(text) for text in schema.get("missingValues", ()) if str(text).strip() not in ("", "?"))
    for about in schema.get("fields", ()):
        if not isinstance(about, dict) or "name" not in about:
            continue
        limits = about.get("constraints", {}) or {}
        listed = limits.get("enum") or about.get("categories") or about.get("enum") or ()
        codes = tuple(str(one.get("value") if isinstance(one, dict) else one) for one in listed)
        own = tuple(str(text) for text in about.get("missingValues", missing) if str(text).strip() not in ("", "?"))
        entry = _typed(
            str(about["name"]), str(about.get("type", "")), limits.get("minimum"), limits.get("maximum"), codes
        )
        nullable = entry.nullable or not limits.get("required", False)
        yield replace(entry, nullable=nullable, absent=own if entry.kind in ("numeric", "date") else ())


def _croissant(content: Mapping[str, Any]) -> Iterator[DictionaryEntry]:
    sets = [one for one in content.get("recordSet", ()) if isinstance(one, dict)]
    listed = {str(one.get("@id", one.get("name"))): one for one in sets if one.get("data")}
    for one in sets:
        if one in listed.values():
            continue
        for about in _listed(one.get("field")):
            name = str(about.get("name") or str(about.get("@id", "")).rpartition("/")[2])
            kinds = [str(kind).rpartition(":")[2].lower() for kind in _listed(about.get("dataType"), plain=True)]
            refers = about.get("references", {}) or {}
            target = str((refers.get("field") or refers).get("@id", "")) if isinstance(refers, dict) else ""
            source = listed.get(target.rpartition("/")[0])
            key = target.rpartition("/")[2]
            rows = source["data"] if source else ()
            codes = tuple(str(row.get(target, row.get(key))) for row in rows if isinstance(row, dict))
            number = next((kind for kind in kinds if kind in _CROISSANT_NUMBERS), "")
            kind = ("integer" if number.startswith("int") else "number") if number else (kinds or [""])[0]
            yield _typed(name, kind, about.get("minValue"), about.get("maxValue"), codes)


def _listed(value: Any, *, plain: bool = False) -> list[Any]:
    found = value if isinstance(value, list) else [] if value is None else [value]
    return found if plain else [one for one in found if isinstance(one, dict)]


def _typed(name: str, kind: str, low: Any, high: Any, codes: tuple[str, ...]) -> DictionaryEntry:
    kind = kind.strip().lower()
    if codes:
        return DictionaryEntry(name, "categorical", codes=codes)
    if kind in ("boolean", "bool"):
        return DictionaryEntry(name, "categorical", codes=("false", "true"))
    some = low not in (None, "") and high not in (None, "")
    if kind in _DATES:
        if not some:
            return DictionaryEntry(name, why="a date without its lowest and highest value")
        return DictionaryEntry(name, "date", dates=(str(low), str(high)), integer=kind == "date")
    if some and is_number(str(low)) and is_number(str(high)):
        ends = float(low), float(high)
        whole = kind in _WHOLE or (kind == "" and all(end.is_integer() for end in ends))
        return DictionaryEntry(name, "numeric", *ends, integer=whole)
    lacking = "a number without its lowest and highest value" if kind in _NUMERIC else "the dictionary lists no values"
    return DictionaryEntry(name, why=lacking)


def _codebook(path: Path) -> Iterator[DictionaryEntry]:
    """One row a column, or one row a value of a column."""
    dialect = dialect_of(path)
    with path.open(encoding=dialect.encoding.replace("utf-8", "utf-8-sig"), newline="") as file:
        rows = list(csv.DictReader(file, delimiter=dialect.delimiter))
    names = {str(key).strip().lower().replace("_", " "): key for key in (rows[0] if rows else {}) if key is not None}
    column = next((names[one] for one in _COLUMN if one in names), None)
    if column is None:
        shown = ", ".join(names) or "no columns"
        raise DataError(
            f"{path} has no column for the variables' names (it has {shown}): call it name, variable or field."
        )
    grouped: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        name = (row.get(column) or "").strip()
        if name:
            grouped.setdefault(name, []).append(row)
    for name, own in grouped.items():
        yield _of_rows(name, own, names)


def _of_rows(name: str, rows: Sequence[Mapping[str, str]], names: Mapping[str, str]) -> DictionaryEntry:
    def cell(row: Mapping[str, str], keys: Sequence[str]) -> str:
        return next((str(row[names[key]]).strip() for key in keys if key in names and row[names[key]]), "")

    first, single = rows[0], len(rows) == 1
    written = [cell(row, _VALUES) for row in rows]
    parts = [part for text in written for part in (re.split(r"[;|\n]", text) if single else [text]) if part.strip()]
    meant: dict[str, str] = {}
    for part in parts:
        pair = _PAIR.match(part)
        meant[pair["code"] if pair else part.strip()] = pair["label"] if pair else ""
    low, high = (next((cell(row, keys) for row in rows if cell(row, keys)), "") for keys in (_LOW, _HIGH))
    absent = tuple(text.strip() for text in re.split(r"[;|,]", cell(first, _ABSENT)) if text.strip())
    kind = cell(first, _TYPE)
    if is_number(low) and is_number(high) and kind.lower() not in _DATES:
        whole = kind.lower() in _WHOLE or (kind.lower() not in _NUMERIC and "." not in low + high)
        entry = _quantity(name, float(low), float(high), meant, whole=whole)
        every = tuple(dict.fromkeys((*entry.absent, *absent)))
        return replace(entry, absent=every, nullable=bool(every))
    entry = _typed(name, kind, low, high, tuple(meant))
    return replace(entry, absent=absent) if entry.kind == "date" else entry
