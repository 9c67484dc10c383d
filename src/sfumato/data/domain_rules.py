"""The rules between columns that a domain declares::

    [[rules]]                                    # in every record: if … then …
    if = { age = "..14" }
    then = { married = "no", income = "missing" }
    exactly = true                               # and only then; by default false

Values are a text or a list of texts: categories; for a number values and ranges with one end or two (``"18"``,
``"..14"``, ``"15..64"``, ``"65.."``), ends included; ``missing`` for what is missing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.core.column_rules import MISSING, Among, ColumnRule
from sfumato.core.errors import DataError, unknown
from sfumato.core.schema import Column, FixedSum


def parse_rules(
    name: str, tables: Any, columns: Mapping[str, Column], sums: Sequence[FixedSum]
) -> tuple[ColumnRule, ...]:
    """The rules in a domain's content; ``sums`` must not name the same columns."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise DataError(f"{name}: write each rule as a table [[rules]] with if and then.")
    rules = tuple(_rule(f"{name}, [[rules]] {place}", table, columns) for place, table in enumerate(tables))
    summed = {part for one in sums for part in one.names}
    for rule in rules:
        both = next((part for part in rule.names if part in summed), None)
        if both is not None:
            raise DataError(f"{name}: column '{both}' is in [[sums]] and in [[rules]]; only one of them can be kept.")
    return rules


def _rule(where: str, table: Mapping[str, Any], columns: Mapping[str, Column]) -> ColumnRule:
    for key in table:
        if key not in ("if", "then", "exactly"):
            raise DataError(f"{where}: {unknown('key', key, ('if', 'then', 'exactly'))}")
    if not isinstance(table.get("exactly", False), bool):
        raise DataError(f"{where}: exactly must be true or false, got {table['exactly']!r}.")
    sides = []
    for side in ("if", "then"):
        given = table.get(side)
        if not isinstance(given, dict) or not given:
            raise DataError(f'{where}: {side} must name columns with values, as in {side} = {{ age = "..14" }}.')
        sides.append({column: _values(f"{where}, {side}", column, values, columns) for column, values in given.items()})
    twice = next((column for column in sides[0] if column in sides[1]), None)
    if twice is not None:
        raise DataError(f"{where}: column '{twice}' is in if and in then: declare what it may be in its own table.")
    return ColumnRule(sides[0], sides[1], bool(table.get("exactly", False)))


def _values(where: str, name: str, given: Any, columns: Mapping[str, Column]) -> Among:
    if name not in columns:
        raise DataError(f"{where}: {unknown('declared column', name, columns)}")
    column = columns[name]
    if column.form:
        raise DataError(f"{where}: '{name}' is a date, and rules are for numbers and categories.")
    values = given if isinstance(given, list) else [given]
    if not values or not all(isinstance(one, str | int | float) and not isinstance(one, bool) for one in values):
        raise DataError(f"{where}: '{name}' must be a text or a list of texts, got {given!r}.")
    return tuple(_value(where, column, str(one).strip()) for one in values)


def _value(where: str, column: Column, text: str) -> str | tuple[float, float]:
    if text in (MISSING, column.MISSING, *column.absent):
        if not column.nullable:
            raise DataError(f"{where}: '{column.name}' is declared to be never missing.")
        return MISSING
    if column.kind == "categorical":
        if text not in column.categories:
            raise DataError(f"{where}: {unknown(f'category of {column.name}', text, column.categories)}")
        return text
    first, dots, last = text.partition("..")
    try:
        low = float(first) if first else -math.inf
        high = low if not dots else float(last) if last else math.inf
    except ValueError:
        raise DataError(
            f"{where}: '{text}' is no number or range (18, ..14, 15..64 or 65..) of '{column.name}'."
        ) from None
    low, high = max(low, column.low), min(high, column.high)
    if not low <= high:
        raise DataError(
            f"{where}: '{text}' lies outside the declared range {column.low:g} to {column.high:g} of '{column.name}'."
        )
    return low, high
