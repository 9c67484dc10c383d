"""Places in files and what is wrong there, in one form for errors and for the problems that ``check`` finds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from sfumato.core.errors import DataError


@dataclass(frozen=True)
class Problem:
    """One problem of a file. An ``error`` makes ``load`` fail; a ``warning`` may spoil the results."""

    severity: Literal["error", "warning"]
    where: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.where}: {self.what}; {self.remedy}."


@dataclass(frozen=True)
class Place:
    """A file, a column of it or a cell. Rows count from 0 in file order, without the header."""

    file: str
    column: str | None = None
    row: int | None = None

    def __str__(self) -> str:
        column = "" if self.column is None else f", column '{self.column}'"
        row = "" if self.row is None else f", row {self.row}"
        return f"{self.file}{column}{row}"

    def below(self, rows: int) -> Place:
        """Return the place so many rows further down, or down from the top if this place has no row."""
        return replace(self, row=(self.row or 0) + rows)

    def fault(self, what: str, remedy: str) -> DataError:
        """Return the error that says what is wrong here, and what to do about it."""
        return DataError(f"{self}: {what}; {remedy}.")

    def error(self, what: str, remedy: str) -> Problem:
        """Return a problem that makes the file unusable."""
        return Problem("error", str(self), what, remedy)

    def warning(self, what: str, remedy: str) -> Problem:
        """Return a problem that may spoil the results."""
        return Problem("warning", str(self), what, remedy)
