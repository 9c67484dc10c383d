"""One way to say what is wrong with a file: where, what, and what to do about it."""

from __future__ import annotations

from sfumato.core.errors import DataError


def fault(file: str, what: str, *, remedy: str = "", column: str | None = None, row: int | None = None) -> DataError:
    """The error for ``file``; rows are numbered from 0 as in the file, header not counted."""
    place = [file]
    if column is not None:
        place.append(f"column '{column}'")
    if row is not None:
        place.append(f"row {row}")
    return DataError(f"{', '.join(place)}: {what}{'; ' + remedy if remedy else ''}.")
