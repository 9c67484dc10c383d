"""The errors that sfumato raises on purpose, each with the exit code of the command line.

A message says what is wrong, where (file, column, row, parameter and value) and what to do about it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SfumatoError(Exception):
    """Base class of all errors that sfumato raises on purpose."""

    exit_code = 1


class UsageError(SfumatoError):
    """An unknown name, or a parameter or combination that is not allowed."""

    exit_code = 2


class DataError(SfumatoError):
    """A file, column, record or run folder that cannot be used."""

    exit_code = 3


class GateFailed(SfumatoError):
    """A release that does not meet the limits set for it."""

    exit_code = 4


class Unanswered(SfumatoError):
    """An attack asked a pipeline for payloads that nobody can give; the message says what would be needed."""


class RuleBroken(SfumatoError):
    """A mechanism or attack that breaks a rule of the framework, which is a bug in that component."""


def unknown(what: str, name: str, known: Iterable[str]) -> UsageError:
    """Return the error for an unknown name, suggesting the nearest known one."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(names) or 'none'}."
    return UsageError(f"unknown {what} '{name}': {hint}")


def check_range(owner: str, parameter: str, value: float, low: float, high: float, *, open_low: bool = False) -> None:
    """Raise ``UsageError`` unless low ≤ value ≤ high (low < value with ``open_low``). NaN is always out of range."""
    inside = (low < value if open_low else low <= value) and value <= high
    if not inside:
        bracket = "(" if open_low else "["
        raise UsageError(f"{owner}: {parameter} must lie in {bracket}{low:g}, {high:g}], got {value!r}.")
