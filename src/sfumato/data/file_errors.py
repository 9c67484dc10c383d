"""Places in files and what is wrong there, in one form for errors and for the problems that ``check`` finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Literal

from sfumato.core.errors import DataError

_SHEETS = (".csv", ".tsv", ".tab", ".txt", ".xlsx", ".xlsm")
_SHOWN = 5


@dataclass(frozen=True)
class Problem:
    """One finding about a file. An ``error`` makes ``load`` fail, a ``warning`` may spoil the results, and a ``note``
    says how something is read."""

    severity: Literal["error", "warning", "note"]
    where: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.where}: {self.what}; {self.remedy}."


@dataclass(frozen=True)
class Place:
    """A file, a column of it or a cell.

    ``row`` counts from 0 in file order, without the header. Messages say the line of a text file or a spreadsheet
    (the header is line 1), the file's name of a picture or recording that is a file (``record``), and else the row.
    """

    file: str
    column: str | None = None
    row: int | None = None
    record: str | None = None

    def __str__(self) -> str:
        column = "" if self.column is None else f", column '{self.column}'"
        if self.record is not None:
            return f"{self.file}, {self.record}"
        row = "" if self.row is None else f", {self.row_text}"
        return f"{self.file}{column}{row}"

    @property
    def row_text(self) -> str:
        """The row as messages say it."""
        return self.record or rows_text(self.file, [self.row or 0])

    def below(self, rows: int) -> Place:
        """Return the place so many rows further down, or down from the top if this place has no row."""
        return replace(self, row=(self.row or 0) + rows)

    def fault(self, what: str, remedy: str) -> DataError:
        """Return the error that says what is wrong here, and what to do about it."""
        return FaultHere(self, what, remedy)

    def error(self, what: str, remedy: str) -> Problem:
        """Return a problem that makes the file unusable."""
        return Problem("error", str(self), what, remedy)

    def warning(self, what: str, remedy: str) -> Problem:
        """Return a problem that may spoil the results."""
        return Problem("warning", str(self), what, remedy)

    def note(self, what: str, remedy: str) -> Problem:
        """Return a finding that says how something is read."""
        return Problem("note", str(self), what, remedy)


class FaultHere(DataError):
    """An error of the data that knows its place, so that ``check`` can list it with others."""

    def __init__(self, where: Place, what: str, remedy: str) -> None:
        super().__init__(f"{where}: {what}; {remedy}.")
        self.where, self.what, self.remedy = where, what, remedy

    def __reduce__(self) -> tuple[type[FaultHere], tuple[Place, str, str]]:
        return FaultHere, (self.where, self.what, self.remedy)


def counts_lines(file: str) -> bool:
    """Whether the rows of a file are lines that its reader can count: text and spreadsheets."""
    path = PurePath(file)
    return (PurePath(path.stem) if path.suffix.lower() == ".gz" else path).suffix.lower() in _SHEETS


def rows_text(file: str, rows: Sequence[int]) -> str:
    """Rows as messages say them, the first few of them."""
    lines = counts_lines(file)
    shown = ", ".join(str(row + 2 if lines else row) for row in rows[:_SHOWN]) + (", …" if len(rows) > _SHOWN else "")
    return f"{'line' if lines else 'row'}{'' if len(rows) == 1 else 's'} {shown}"


def problem_of(error: Exception, file: str, remedy: str) -> Problem:
    """An error as a finding: with its own place if it knows one, else about the whole file."""
    if isinstance(error, FaultHere):
        return error.where.error(error.what, error.remedy)
    text = str(error).rstrip(".").removeprefix(f"{file}: ").removeprefix(f"{file} ")
    what, _, own = text.rpartition(": ")  # messages end with what to do
    return Place(file).error(what, own) if what else Place(file).error(text, remedy)
