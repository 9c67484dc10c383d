"""JSON and TOML that come from outside: what is broken or nested too deeply is one clear error, wherever it is read."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sfumato.core.errors import DataError

MOST_NESTED = 64
"""Levels. Ours have fewer than ten; whoever walks through a value by recursion is safe at this depth."""


def json_value(raw: bytes | str, name: str, remedy: str = "correct it") -> Any:
    """The value of a JSON text that messages call ``name``; a ``DataError`` if it is broken or nested too deeply."""
    return _parsed(json.loads, "JSON", raw, name, remedy)


def toml_table(raw: bytes | str, name: str, remedy: str = "correct it") -> dict[str, Any]:
    """The table of a TOML text, likewise."""
    table: dict[str, Any] = _parsed(tomllib.loads, "TOML", raw, name, remedy)
    return table


def _parsed(parse: Callable[[str], Any], language: str, raw: bytes | str, name: str, remedy: str) -> Any:
    try:
        value = parse(raw if isinstance(raw, str) else raw.decode())
    except ValueError as error:  # the parsers' own errors and wrong UTF-8
        raise DataError(f"{name} is not valid {language} ({error}): {remedy}.") from None
    except RecursionError:
        deep = True
    else:
        deep = _deeper(value, MOST_NESTED)
    if deep:
        raise DataError(f"{name} has {language} of more than {MOST_NESTED} levels in one another: {remedy}.")
    return value


def _deeper(value: Any, most: int) -> bool:
    """Whether there are more than ``most`` tables or lists in one another; level by level, without recursion."""
    level: list[Any] = [value]
    for _ in range(most):
        level = [item for outer in level for item in _items(outer)]
    return any(isinstance(outer, (Mapping, list)) for outer in level)


def _items(outer: Any) -> Iterable[Any]:
    """What is a level further in and may hold more."""
    found = outer.values() if isinstance(outer, Mapping) else outer if isinstance(outer, list) else ()
    return (item for item in found if isinstance(item, (Mapping, list)))
