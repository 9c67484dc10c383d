"""What can go wrong, by intent: each error knows the exit code that a command ends with.

A message says what is wrong, where (file, column, row, parameter and value) and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SfumatoError(Exception):
    """Base of every error that sfumato raises on purpose."""

    exit_code = 1


class UsageError(SfumatoError):
    """A name, parameter or combination that sfumato does not have."""

    exit_code = 2


class DataError(SfumatoError):
    """A file, column, record or run folder that cannot be used."""

    exit_code = 3


class GateFailed(SfumatoError):
    """A release that does not meet the limits it was held against."""

    exit_code = 4


class RuleBroken(SfumatoError):
    """A mechanism or an attack that breaks one of the house's rules (a bug in that component)."""


def unknown(what: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for a mistyped name, with the nearest name that exists."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(names) or 'none'}."
    return UsageError(f"unknown {what} '{name}': {hint}")


def check_range(owner: str, parameter: str, value: float, low: float, high: float, *, open_low: bool = False) -> None:
    """Raise unless low ≤ value ≤ high (low < value with ``open_low``); NaN is out of every range."""
    inside = (low < value if open_low else low <= value) and value <= high
    if not inside:
        bracket = "(" if open_low else "["
        raise UsageError(f"{owner}: {parameter} must lie in {bracket}{low:g}, {high:g}], got {value!r}.")
