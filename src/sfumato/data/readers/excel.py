"""Spreadsheets (.xlsx), read as text like a delimited file: the first sheet, whose first row is the header."""

from __future__ import annotations

import zipfile
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from sfumato.core.errors import DataError
from sfumato.core.extras import require
from sfumato.data.file_errors import Place
from sfumato.data.limits import MAX_WHOLE_ARRAY_BYTES
from sfumato.data.readers.parquet import brief, check_names
from sfumato.data.readers.source import MemorySource

SUFFIXES = (".xlsx", ".xlsm")


class ExcelSource(MemorySource):
    """The first sheet of a workbook. Numbers, dates and texts become text; empty rows at the end do not count."""

    def __init__(self, path: Path) -> None:
        require("excel", f"{path.name}, a spreadsheet,", "openpyxl")
        import pyarrow as pa

        names, rows, others = _first_sheet(path)
        check_names(str(path), names)
        columns = {name: pa.array([row[place] for row in rows], pa.string()) for place, name in enumerate(names)}
        super().__init__(str(path), path.stem, pa.table(columns), untyped=True)
        if others:
            shown = ", ".join(f"'{name}'" for name in others)
            self.remarks = ((f"only the first sheet is read, not {shown}", "save each as a file of its own"),)


def _first_sheet(path: Path) -> tuple[list[str], list[list[str]], list[str]]:
    """Header, rows of text, and the names of the other sheets."""
    import openpyxl

    where = Place(str(path))
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(one.file_size for one in archive.infolist()) > MAX_WHOLE_ARRAY_BYTES:
                raise where.fault("is too large for a spreadsheet", "save it as CSV or Parquet")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        sheet = book.worksheets[0]
        sheet.reset_dimensions()
        rows = [[_text(cell, where, number) for cell in row] for number, row in enumerate(sheet.values, 1)]
        others = [one.title for one in book.worksheets[1:]]
        book.close()
    except FileNotFoundError:
        raise where.fault("does not exist", "check the path") from None
    except DataError:
        raise
    except Exception as error:  # openpyxl raises what it meets in a damaged workbook
        raise where.fault(f"is no readable spreadsheet ({brief(error)})", "save it again as .xlsx, or as CSV") from None
    while rows and not any(rows[-1]):
        rows.pop()
    if not rows:
        raise where.fault("is empty", "give a sheet with a header and rows")
    names = list(rows[0])
    while names and not names[-1]:
        names.pop()
    gap = next((place for place, name in enumerate(names) if not name), None)
    if gap is not None:
        raise where.fault(
            f"column {gap + 1} has no name in line 1", "write the names of all columns into the first row"
        )
    for number, row in enumerate(rows[1:], 2):
        if any(row[len(names) :]):
            raise where.fault(f"line {number} has more cells than the header", "name all columns, or remove the cells")
    return names, [(row + [""] * len(names))[: len(names)] for row in rows[1:]], others


def _text(cell: Any, where: Place, number: int) -> str:
    """A cell as a text file would have it."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat(sep=" ")
    if isinstance(cell, date | time):
        return cell.isoformat()
    text = str(cell).strip()
    if text.startswith("#") and text.rstrip("!?").isupper() and text[-1:] in "!?A":
        raise where.fault(
            f"line {number} holds the spreadsheet's error {text}", "correct the formula, or empty the cell"
        )
    return text
