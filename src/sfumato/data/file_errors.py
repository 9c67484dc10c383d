"""One format for errors about a file: where, what is wrong, and what to do about it."""

from __future__ import annotations

from sfumato.core.errors import DataError


def fault(file: str, what: str, *, remedy: str = "", column: str | None = None, row: int | None = None) -> DataError:
    """Return the error for ``file``. Rows count from 0 in file order, without the header."""
    place = [file]
    if column is not None:
        place.append(f"column '{column}'")
    if row is not None:
        place.append(f"row {row}")
    return DataError(f"{', '.join(place)}: {what}{'; ' + remedy if remedy else ''}.")
