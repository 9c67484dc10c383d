"""Fields of a JSON table from outside: each is checked when it is read, and an error says where it stands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sfumato.core.errors import DataError

FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""A file of the bundle itself: no folder, no way up, nothing hidden."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MOST_PAIRS, _MOST_NUMBERS = 1 << 20, 1 << 24


class Fields:
    """One JSON table, and where it stands: each method gives a checked field or raises a ``DataError``."""

    def __init__(self, value: Any, where: str, path: str) -> None:
        self._where, self._path = where, path
        if not isinstance(value, Mapping):
            raise DataError(f"{where}: {path or 'the manifest'} is no table: export the bundle again.")
        self.value: Mapping[str, Any] = value

    def fault(self, name: str, what: str) -> DataError:
        """The error about a field."""
        return DataError(f"{self._where}: {self._at(name)} {what}: export the bundle again.")

    def _at(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def _get(self, name: str, kinds: type | tuple[type, ...], what: str) -> Any:
        found = self.value.get(name)
        if not isinstance(found, kinds) or (isinstance(found, bool) and kinds is not bool):
            raise self.fault(name, f"must be {what}, and is {_short(found)}" if name in self.value else "is missing")
        return found

    def names(self) -> tuple[str, ...]:
        return tuple(self.value)

    def table(self, name: str) -> Fields:
        return Fields(self._get(name, Mapping, "a table"), self._where, self._at(name))

    def tables(self, name: str, most: int) -> list[Fields]:
        found = self._list(name, most)
        return [Fields(one, self._where, f"{self._at(name)}[{place}]") for place, one in enumerate(found)]

    def _list(self, name: str, most: int) -> list[Any]:
        found: list[Any] = self._get(name, list, "a list")
        if len(found) > most:
            raise self.fault(name, f"has {len(found)} entries, more than {most}")
        return found

    def text(self, name: str) -> str:
        return str(self._get(name, str, "a text"))

    def texts(self, name: str, most: int) -> tuple[str, ...]:
        found = self._list(name, most)
        if not all(isinstance(one, str) for one in found):
            raise self.fault(name, "must be a list of texts")
        return tuple(found)

    def name(self, name: str) -> str:
        found = self.text(name)
        if not _NAME.fullmatch(found):
            raise self.fault(name, f"must be a short name of letters, digits, '.', '-' and '_', and is {_short(found)}")
        return found

    def file(self, name: str) -> str:
        found = self.text(name)
        if not FILE.fullmatch(found):
            raise self.fault(name, f"must be the name of a file in the bundle, and is {_short(found)}")
        return found

    def digest(self, name: str) -> str:
        found = self.text(name)
        if not _DIGEST.fullmatch(found):
            raise self.fault(name, "must be a SHA-256 in hexadecimal")
        return found

    def choice(self, name: str, options: tuple[Any, ...]) -> Any:
        found = self.text(name)
        if found not in options:
            raise self.fault(name, f"must be one of {', '.join(options)}, and is {_short(found)}")
        return found

    def flag(self, name: str) -> bool:
        return bool(self._get(name, bool, "true or false"))

    def number(self, name: str) -> float:
        found = float(self._get(name, (int, float), "a number"))
        if not abs(found) < float("inf"):
            raise self.fault(name, "must be finite")
        return found

    def numbers(self, name: str) -> tuple[float, ...]:
        found = self._list(name, _MOST_NUMBERS)
        if not all(isinstance(one, (int, float)) and abs(one) < float("inf") for one in found):
            raise self.fault(name, "must be a list of numbers")
        return tuple(float(one) for one in found)

    def pair(self, name: str) -> tuple[float, float]:
        low, high = (*self.numbers(name), 0.0, 0.0)[:2]
        if len(self.value[name]) != 2 or low > high:
            raise self.fault(name, "must be a low and a high end")
        return low, high

    def pairs(self, name: str) -> tuple[tuple[float, float], ...]:
        found = self._list(name, _MOST_PAIRS)
        return tuple(Fields({"of": one}, self._where, self._at(name)).pair("of") for one in found)

    def whole(self, name: str, low: int, high: int) -> int:
        found = int(self._get(name, int, "a whole number"))
        if not low <= found <= high:
            raise self.fault(name, f"must lie in {low} … {high}, and is {found}")
        return found

    def wholes(self, name: str, low: int, high: int, most: int) -> tuple[int, ...]:
        found = self._list(name, most)
        if not all(isinstance(one, int) and not isinstance(one, bool) and low <= one <= high for one in found):
            raise self.fault(name, f"must be whole numbers in {low} … {high}")
        return tuple(found)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
