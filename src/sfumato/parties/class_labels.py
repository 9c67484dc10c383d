"""Parties share labels with classes: what a number would tell, its mean and its range, is not agreed upon."""

from __future__ import annotations

from sfumato.core.errors import UsageError
from sfumato.core.schema import Schema


def refuse_numbers(schema: Schema) -> Schema:
    """The schema, unless one of its labels is a number."""
    for label, scale in schema.numbers.items():
        raise UsageError(
            f"'{label}' is a number, and parties share labels with classes: ask for '{label}:class', or for a question "
            f"such as '{label} >= {(scale.low + scale.high) / 2:g}'."
        )
    return schema
