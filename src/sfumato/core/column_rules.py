"""Declared rules between the columns of a table: if a record has these values here, it has those values there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

MISSING = "missing"
"""Stands for a missing value in ``Among``."""
Among = tuple[str | tuple[float, float], ...]
"""Values of one column: categories (or, of a number, what stands for a missing one) as texts, ranges as pairs."""


@dataclass(frozen=True)
class ColumnRule:
    """Records that are among ``when`` in every column named there are among ``then`` in every column named there.

    With ``exactly``, all other records are outside of ``then`` in each of its columns: if and only if.
    """

    when: Mapping[str, Among]
    then: Mapping[str, Among]
    exactly: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that takes part."""
        return (*self.when, *self.then)

    def __str__(self) -> str:
        return f"if{' and only if' if self.exactly else ''} {_said(self.when)}, then {_said(self.then)}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; ``from_json`` is the inverse."""
        return {
            "if": {name: _plain(among) for name, among in self.when.items()},
            "then": {name: _plain(among) for name, among in self.then.items()},
            "exactly": self.exactly,
        }

    def declared(self) -> dict[str, Any]:
        """As a domain file writes it: a range is a text."""

        def shown(among: Among) -> list[str]:
            return [one if isinstance(one, str) else f"{one[0]!r}..{one[1]!r}" for one in among]

        sides = {"if": self.when, "then": self.then}
        written = {side: {name: shown(some) for name, some in of.items()} for side, of in sides.items()}
        return {**written, **({"exactly": True} if self.exactly else {})}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ColumnRule:
        """Rebuild a rule written by ``to_json``."""
        when, then = ({name: _among(values) for name, values in value[side].items()} for side in ("if", "then"))
        return cls(when, then, bool(value["exactly"]))


def among(values: Among, categories: Sequence[str], codes: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which entries of a column have these values: numbers with NaN for a missing one, or, of a column with
    ``categories``, codes, the one after the last for a missing one."""
    if categories:
        known = np.array([one in values for one in (*categories, MISSING)])
        return np.asarray(known[codes])
    found = np.isnan(codes) & (MISSING in values)
    for one in values:
        if not isinstance(one, str):
            found |= (codes >= one[0]) & (codes <= one[1])
    return np.asarray(found)


def broken_rows(rule: ColumnRule, inside: Mapping[str, npt.NDArray[np.bool_]]) -> npt.NDArray[np.bool_]:
    """Which records break a rule, given for each of its columns whether they are among the values it names there."""
    when = np.logical_and.reduce([inside[name] for name in rule.when])
    broken = np.zeros(len(when), dtype=np.bool_)
    for name in rule.then:
        broken |= when & ~inside[name]
        if rule.exactly:
            broken |= ~when & inside[name]
    return broken


def _plain(among: Among) -> list[str | list[float]]:
    return [one if isinstance(one, str) else list(one) for one in among]


def _among(values: list[Any]) -> Among:
    return tuple(one if isinstance(one, str) else (float(one[0]), float(one[1])) for one in values)


def _said(side: Mapping[str, Among]) -> str:
    def shown(one: str | tuple[float, float]) -> str:
        if isinstance(one, str):
            return one
        return f"{one[0]:g}" if one[0] == one[1] else f"{one[0]:g}..{one[1]:g}"

    return " and ".join(f"{name} is {' or '.join(shown(one) for one in among)}" for name, among in side.items())
