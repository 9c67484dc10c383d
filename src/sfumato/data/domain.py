"""Declared domains: ranges, categories and classes from public knowledge instead of from the records.

Privacy guarantees need one, because anything read from the records, even a maximum, reveals something about them. The
file is TOML with one table per column, for columns of x and for labels (whose categories are their classes) alike::

    [columns.age]
    kind = "numeric"        # or "categorical", "date" or "signal"
    low = 17
    high = 90
    integer = true          # whole numbers only
    nullable = false        # true: a value may be missing
    clip = false            # true: a number outside the range is clipped to it instead of being an error
    absent = ["N"]          # texts that stand for a missing number; with any, a value may be missing

    [columns.admitted]
    kind = "date"
    low = "2019-01-01"
    high = "2021-12-31"
    form = "dmy"            # how the file writes it: iso (default), dmy, mdy; or clock for times of day
    integer = true          # days without a time
    cycles = ["week"]       # also as a place in the day, the week or the year

    [columns.job]
    kind = "categorical"
    categories = ["clerk", "cook"]

    [columns.samples]
    kind = "signal"
    ranges = [[-2.0, 2.0]]  # one pair for all channels, or one per channel

    [[sums]]                # in every record these numeric columns of x add up to another column or to a number
    columns = ["rent", "food", "rest"]
    total = "spent"

    [[rules]]               # in every record: if … then … (see ``domain_rules``)
    if = { age = "..14" }
    then = { married = "no" }

``leave_out = ["notes"]`` at the top names columns that are no part of a record. ``draft = true`` there marks a file
whose ranges were read from the records, so they do not count as declared. A column of lists of numbers is declared as
``numeric``; ``[columns."x[3]"]`` overrides it for one entry of the list.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, time
from functools import lru_cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from sfumato.core.column_rules import ColumnRule
from sfumato.core.documents import toml_table
from sfumato.core.errors import DataError, unknown
from sfumato.core.schema import Column, FixedSum, Schema
from sfumato.data.column_roles import Roles
from sfumato.data.domain_rules import parse_rules
from sfumato.data.encoding.dates import CYCLES, FORMS, number_of
from sfumato.data.label_expressions import BOOLEAN_CLASSES, Expression
from sfumato.data.limits import MAX_CATEGORIES, MAX_CLASSES
from sfumato.data.numeric_labels import declared_scale
from sfumato.data.readers.source import Source
from sfumato.data.registry import Entry
from sfumato.data.schema_inference import shape_of
from sfumato.data.table_inference import cycle_columns

_KEYS: dict[str, dict[str, str]] = {
    "numeric": {
        "low": "number", "high": "number", "integer": "flag", "nullable": "flag", "clip": "flag", "absent": "texts",
    },
    "categorical": {"categories": "texts", "nullable": "flag"},
    "date": {
        "low": "date", "high": "date", "form": "text", "integer": "flag", "nullable": "flag", "clip": "flag",
        "absent": "texts", "cycles": "texts",
    },
    "signal": {"ranges": "pairs", "clip": "flag"},
}  # fmt: skip
_NEEDED = {
    "numeric": ("low", "high"), "categorical": ("categories",), "date": ("low", "high"), "signal": ("ranges",),
}  # fmt: skip
LEFT_OUT = "the domain leaves it out"
_NOUNS = {
    "number": "a finite number",
    "flag": "true or false",
    "text": "a text",
    "date": 'a date such as "2024-03-31", or "23:59" with form = "clock"',
    "texts": "a list of strings",
    "pairs": "a list of pairs [low, high]",
}


@dataclass(frozen=True)
class Domain:
    """A parsed domain: table columns as they will be encoded, and for each signal its ranges and whether to clip."""

    name: str
    columns: Mapping[str, Column] = field(default_factory=dict)
    signals: Mapping[str, tuple[tuple[tuple[float, float], ...], bool]] = field(default_factory=dict)
    cycles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    leave_out: tuple[str, ...] = ()
    sums: tuple[FixedSum, ...] = ()
    rules: tuple[ColumnRule, ...] = ()
    draft: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all declared columns."""
        return (*self.columns, *self.signals)


DomainName = str | PathLike[str] | Domain | None


def open_domain(given: DomainName) -> Domain | None:
    """Return a domain as given, or read it from its file."""
    if given is None or isinstance(given, Domain):
        return given
    path = Path(given)
    try:
        return parse_domain(path.read_text(), str(path))
    except FileNotFoundError:
        raise DataError(f"{path} does not exist: draft a domain with 'sfumato data domain SOURCE'.") from None
    except (IsADirectoryError, UnicodeDecodeError):
        raise DataError(f"{path} is not a TOML file: draft a domain with 'sfumato data domain SOURCE'.") from None


@lru_cache(maxsize=8)
def built_in(name: str) -> Domain:
    """Return a domain shipped with sfumato, taken from the public documentation of a named set."""
    return parse_domain((files("sfumato.data") / "domains" / f"{name}.toml").read_text(), f"the domain of {name}")


def domain_for(given: DomainName, entry: Entry | None, source: Source) -> Domain | None:
    """Return the user's domain, or else that of the named set, provided the file has exactly that set's columns."""
    domain = open_domain(given)
    if domain is None and entry is not None and entry.domain is not None:
        known = built_in(entry.domain)
        return known if set(source.columns) == set(known.names) else None
    return domain


def parse_domain(text: str, name: str) -> Domain:
    """Parse and check the text of a domain file, called ``name`` in error messages."""
    content = toml_table(text, name)
    _known_keys(content, ("columns", "sums", "rules", "draft", "leave_out"), name)
    if not isinstance(content.get("draft", False), bool):
        raise DataError(f"{name}: draft must be true or false, got {content['draft']!r}.")
    leave_out = content.get("leave_out", [])
    if leave_out and not _fits(leave_out, "texts"):
        raise DataError(f"{name}: leave_out must be a list of column names, got {leave_out!r}.")
    tables = content.get("columns", {})
    twice = next((column for column in leave_out if column in tables), None)
    if twice is not None:
        raise DataError(f"{name}: column '{twice}' is declared and left out: remove one of the two.")
    if not isinstance(tables, dict) or not tables:
        raise DataError(f"{name} declares no columns: add a table [columns.NAME] for each column.")
    columns: dict[str, Column] = {}
    signals = {}
    cycles: dict[str, tuple[str, ...]] = {}
    for column, table in tables.items():
        where = f"{name}, [columns.{column}]"
        if not isinstance(table, dict):
            raise DataError(f"{where}: must be a table with a kind and a range or categories.")
        kind = table.get("kind")
        if kind not in _KEYS:
            raise DataError(f"{where}: kind must be numeric, categorical, date or signal, got {kind!r}.")
        _check_types(where, kind, table)
        if kind == "signal":
            signals[column] = (_pairs(where, table["ranges"]), bool(table.get("clip", False)))
        else:
            read = {"numeric": _numeric, "categorical": _categorical, "date": _date}[kind]
            columns[column] = read(where, column, table)
            cycles[column] = tuple(table.get("cycles", ()))
    sums = _sums(name, content.get("sums", []), columns)
    rules = parse_rules(name, content.get("rules", []), columns, sums)
    return Domain(name, columns, signals, cycles, tuple(leave_out), sums, rules, content.get("draft", False))


def declared_schema(source: Source, roles: Roles, entry: Entry | None, domain: Domain) -> Schema:
    """Return the schema that a domain declares for a source. Only kind and shape are read from the file."""
    for column in (*domain.names, *domain.leave_out):
        if column.partition("[")[0] not in source.columns and column not in source.columns:
            raise DataError(f"{domain.name}: {unknown(f'column of {source.label}', column, source.columns)}")
    schema = replace(shape_of(source, roles, entry), declared=not domain.draft)
    if schema.kind == "signal":
        schema = _with_ranges(schema, source, domain)
    elif schema.kind == "table":
        out = [] if roles.named else [name for name in roles.x if name in domain.leave_out]
        kept = tuple(name for name in roles.x if name not in out)
        if not kept:
            raise DataError(f"{domain.name} leaves out every column of x: declare one.")
        own = tuple(
            _column_of(domain, name, source, listed=bool(schema.columns))
            for name in ([column.name for column in schema.columns] or kept)
        )
        columns = tuple(
            one
            for column in own
            for one in (column, *(c for cycle in domain.cycles.get(column.name, ()) for c in _cycle(column, cycle)))
        )
        schema = replace(schema, x_columns=kept, left_out=dict.fromkeys(out, LEFT_OUT))
        here, told = {column.name for column in columns}, {label.name for label in roles.utility}
        schema = replace(
            schema,
            columns=columns,
            shape=(sum(column.width for column in columns),),
            sums=tuple(one for one in domain.sums if set(one.names) <= here),
            rules=tuple(one for one in domain.rules if set(one.names) <= here | told),
        )
    named = {**source.class_names, **(entry.classes if entry else {})}
    scales = {label.name: declared_scale(label, domain.columns.get(label.column)) for label in roles.labels}
    classes = {
        label.name: () if scales[label.name] else _classes(label, domain, named, source) for label in roles.labels
    }
    return replace(
        schema,
        utility={label.name: classes[label.name] for label in roles.utility},
        private={label.name: classes[label.name] for label in roles.private},
        sources={label.name: label.text() for label in roles.labels if label.text() != label.name},
        numbers={name: scale for name, scale in scales.items() if scale is not None},
    )


def _column_of(domain: Domain, name: str, source: Source, *, listed: bool) -> Column:
    """Return the declaration of a column. An entry of a list falls back to that of the whole list."""
    found = domain.columns.get(name)
    if found is None and listed:
        found = domain.columns.get(name.rpartition("[")[0])
    if found is None:
        raise DataError(
            f"{domain.name} does not declare column '{name}' of {source.label}: add [columns.{name}], or remove it "
            "from x."
        )
    if listed and (found.kind != "numeric" or found.nullable):
        raise DataError(f"{domain.name}, [columns.{found.name}]: a list column must be numeric and not nullable.")
    return replace(found, name=name)


def _cycle(column: Column, cycle: str) -> Iterator[Column]:
    return cycle_columns(column.name, cycle, form=column.form, absent=column.absent)


def _with_ranges(schema: Schema, source: Source, domain: Domain) -> Schema:
    name = schema.x_columns[0]
    if name not in domain.signals:
        raise DataError(
            f"{domain.name} does not declare '{name}' of {source.label}: add [columns.{name}] with kind = \"signal\"."
        )
    ranges, clip = domain.signals[name]
    channels = schema.shape[0]
    if len(ranges) not in (1, channels):
        raise DataError(
            f"{domain.name}, [columns.{name}]: {len(ranges)} ranges for {channels} channels; give one per channel, or "
            "one for all."
        )
    return replace(schema, ranges=ranges * (channels if len(ranges) == 1 else 1), strict=not clip)


def _classes(
    label: Expression, domain: Domain, named: Mapping[str, tuple[str, ...]], source: Source
) -> tuple[str, ...]:
    if label.derived:
        return BOOLEAN_CLASSES
    column = domain.columns.get(label.column)
    if column is None:
        if label.column in named:
            return named[label.column]
        raise DataError(
            f"{domain.name} does not declare the label column '{label.column}' of {source.label}: add "
            f'[columns.{label.column}] with kind = "categorical" and its classes as categories.'
        )
    if column.kind == "categorical":
        return column.categories
    if not column.integer or column.high - column.low >= MAX_CLASSES:
        raise DataError(
            f"{domain.name}, [columns.{label.column}]: a label needs classes, but this column measures a quantity; "
            f"use a comparison as the label, for example '{label.column} >= {(column.low + column.high) / 2:g}'."
        )
    return tuple(str(value) for value in range(int(column.low), int(column.high) + 1))


def _known_keys(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise DataError(f"{where}: {unknown('key', key, known)}")


def _check_types(where: str, kind: str, table: Mapping[str, Any]) -> None:
    keys = _KEYS[kind]
    _known_keys(table, ("kind", *keys), where)
    for key in _NEEDED[kind]:
        if key not in table:
            raise DataError(f"{where}: a {kind} column needs {' and '.join(_NEEDED[kind])}; '{key}' is missing.")
    for key, value in table.items():
        if key != "kind" and not _fits(value, keys[key]):
            raise DataError(f"{where}: {key} must be {_NOUNS[keys[key]]}, got {value!r}.")


def _fits(value: Any, noun: str) -> bool:
    if noun == "flag":
        return isinstance(value, bool)
    if noun == "text":
        return isinstance(value, str)
    if noun == "date":
        return isinstance(value, str | date | time)
    if noun == "number":
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not isinstance(value, list) or not value:
        return False
    if noun == "texts":
        return all(isinstance(item, str) for item in value)
    return all(
        isinstance(pair, list) and len(pair) == 2 and all(_fits(end, "number") for end in pair) for pair in value
    )


def _numeric(where: str, name: str, table: Mapping[str, Any]) -> Column:
    low, high = float(table["low"]), float(table["high"])
    integer, nullable, clip = (bool(table.get(key, False)) for key in ("integer", "nullable", "clip"))
    absent = tuple(text.strip() for text in table.get("absent", ()))
    if low >= high:
        what = "is constant: leave it out of x and the domain" if low == high else "has its bounds in the wrong order"
        raise DataError(f"{where}: low = {low:g} and high = {high:g}; the column {what}.")
    if integer and not (low.is_integer() and high.is_integer()):
        raise DataError(f"{where}: low and high of an integer column must be whole numbers, got {low:g} and {high:g}.")
    return Column(
        name,
        "numeric",
        low=low,
        high=high,
        nullable=nullable or bool(absent),
        integer=integer,
        strict=not clip,
        absent=absent,
    )


def _categorical(where: str, name: str, table: Mapping[str, Any]) -> Column:
    categories = tuple(text.strip() for text in table["categories"])
    nullable = bool(table.get("nullable", False))
    twice = next((text for place, text in enumerate(categories) if text in categories[:place]), None)
    if twice is not None:
        raise DataError(f"{where}: the category '{twice}' is listed twice.")
    if "" in categories or "?" in categories:
        raise DataError(f"{where}: '' and '?' stand for a missing value: write nullable = true instead.")
    if len(categories) + nullable < 2:
        raise DataError(f"{where}: with one category only the column is constant: leave it out of x and the domain.")
    if len(categories) > MAX_CATEGORIES:
        raise DataError(f"{where}: {len(categories)} categories, at most {MAX_CATEGORIES} are allowed: merge some.")
    return Column(name, "categorical", categories=categories, nullable=nullable, strict=True)


def _date(where: str, name: str, table: Mapping[str, Any]) -> Column:
    form = table.get("form", "iso")
    if form not in FORMS:
        raise DataError(f"{where}: {unknown('form', form, FORMS)}")
    wrong = next((cycle for cycle in table.get("cycles", ()) if cycle not in CYCLES), None)
    if wrong is not None:
        raise DataError(f"{where}: {unknown('cycle', wrong, CYCLES)}")
    written = "clock" if form == "clock" else "iso"
    ends = [number_of(str(table[end]), written) for end in ("low", "high")]
    low, high = ends
    if low is None or high is None:
        raise DataError(f"{where}: low and high must be written like {'23:59' if form == 'clock' else '2024-03-31'}.")
    whole = bool(table.get("integer", form != "clock" and low.is_integer() and high.is_integer()))
    plain = {key: value for key, value in table.items() if key not in ("form", "cycles")}
    return replace(_numeric(where, name, {**plain, "low": low, "high": high, "integer": whole}), form=form)


def _pairs(where: str, ranges: Sequence[Sequence[float]]) -> tuple[tuple[float, float], ...]:
    for place, (low, high) in enumerate(ranges):
        if low >= high:
            raise DataError(f"{where}: range {place} is [{low:g}, {high:g}], but low must be less than high.")
    return tuple((float(low), float(high)) for low, high in ranges)


def _sums(name: str, tables: Any, columns: Mapping[str, Column]) -> tuple[FixedSum, ...]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise DataError(f"{name}: write each fixed sum as a table [[sums]] with columns and total.")
    return tuple(_sum(f"{name}, [[sums]] {place}", table, columns) for place, table in enumerate(tables))


def _sum(where: str, table: Mapping[str, Any], columns: Mapping[str, Column]) -> FixedSum:
    _known_keys(table, ("columns", "total"), where)
    parts, total = table.get("columns", ()), table.get("total")
    if not _fits(parts, "texts") or not (isinstance(total, str) or _fits(total, "number")):
        raise DataError(f"{where}: columns must be a list of names, and total a number or a column's name.")
    found = FixedSum(tuple(parts), total if isinstance(total, str) else float(total or 0.0))
    if len(set(found.names)) < len(found.names) or len(parts) < 2:
        raise DataError(f"{where}: name two columns or more, without repeats.")
    for part in found.names:
        if part not in columns:
            raise DataError(f"{where}: {unknown('declared column', part, columns)}")
        if columns[part].kind != "numeric":
            raise DataError(f"{where}: '{part}' is categorical and cannot be added up.")
    low, high = (sum(getattr(columns[part], end) for part in found.columns) for end in ("low", "high"))
    if isinstance(found.total, str):
        bottom, top = columns[found.total].low, columns[found.total].high
    else:
        bottom = top = found.total
    if bottom > high or top < low:
        raise DataError(
            f"{where}: the columns add up to between {low:g} and {high:g}, never to the total ({bottom:g} to {top:g})."
        )
    return found
