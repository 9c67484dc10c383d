"""How a delimited text file is written: delimiter, characters, compression; and how its cells are read as numbers.

The delimiter is the one that the header has most of. Text is UTF-8 (UTF-16 by its mark), or else Windows-1252, which
has Latin-1 in it; that is told. Where a comma does not divide the cells, it may divide a number: ``1,5`` is 1.5 and
``1.234,5`` is 1234.5. Where it does divide the cells, a quoted ``"1,234"`` is 1234. Each cell is read by itself, so
that one row more or less changes the reading of no other; what could be either is refused.
"""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from sfumato.core.errors import DataError
from sfumato.data.file_errors import Place

SUFFIXES = (".csv", ".tsv", ".tab", ".txt")
COMPRESSED = ".gz"
_TABBED = (".tsv", ".tab")
_DELIMITERS = (",", ";", "\t", "|")
_CHUNK = 2**20
_HEADER = 2**16
_COMMA = r"^[-+]?\d+,\d+$"
_GROUPED_COMMA = r"^[-+]?[1-9]\d{0,2}(?:\.\d{3})+,\d+$"
_GROUPED = r"^[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?$"
_EITHER = r"^[-+]?[1-9]\d{0,2}\.\d{3}$"
_ONLY_GROUPED = r"^[-+]?[1-9]\d{0,2}(?:\.\d{3}){2,}$"


@dataclass(frozen=True)
class Dialect:
    """How one file is written; ``strange`` is the first line that is not UTF-8, if there is one."""

    delimiter: str
    encoding: str
    compressed: bool
    strange: int | None = None


def is_delimited(path: Path) -> bool:
    """Whether a file is delimited text by its name, compressed or not."""
    return _suffix(path) in SUFFIXES


def dialect_of(path: Path) -> Dialect:
    """How the file is written.

    Raises:
        DataError: It is missing, empty, damaged, or in no encoding that is known.
    """
    try:
        about = path.stat()
        return _dialect(path, about.st_mtime_ns, about.st_size)
    except FileNotFoundError:
        raise Place(str(path)).fault("does not exist", "check the path") from None
    except (OSError, EOFError, zlib.error) as error:
        raise Place(str(path)).fault(f"cannot be read ({error})", "write it again") from None


def opened(path: Path, *, compressed: bool) -> IO[bytes]:
    """The bytes of the file, decompressed."""
    return gzip.open(path, "rb") if compressed else path.open("rb")  # type: ignore[return-value]


@lru_cache(maxsize=32)
def _dialect(path: Path, _changed: int, _size: int) -> Dialect:
    compressed = path.suffix.lower() == COMPRESSED
    with opened(path, compressed=compressed) as file:
        head = file.read(_HEADER)
    if not head.strip():
        raise Place(str(path)).fault("is empty", "give a file with a header and rows")
    encoding, strange = _encoding(path, head, compressed)
    first = re.sub(r'"[^"]*"', "", head.decode(encoding, errors="replace")).lstrip("\ufeff").partition("\n")[0]
    delimiter = "\t" if _suffix(path) in _TABBED else max(_DELIMITERS, key=first.count)
    return Dialect(delimiter, encoding, compressed, strange)


def _encoding(path: Path, head: bytes, compressed: bool) -> tuple[str, int | None]:
    """The encoding, and the first line that is not UTF-8."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16", None
    if b"\0" in head:
        raise Place(str(path)).fault("is no text", "give a file of delimited text, Parquet or .xlsx")
    decoder = codecs.getincrementaldecoder("utf-8")()
    lines = 0
    with opened(path, compressed=compressed) as file:
        while chunk := file.read(_CHUNK):
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError as error:
                return "cp1252", lines + 1 + error.object[: error.start].count(b"\n")
            lines += chunk.count(b"\n")
    return "utf-8", None


def stem_of(path: Path) -> str:
    """The file's name without what says how it is written."""
    return Path(path.stem).stem if path.suffix.lower() == COMPRESSED else path.stem


def _suffix(path: Path) -> str:
    return (Path(path.stem) if path.suffix.lower() == COMPRESSED else path).suffix.lower()


class CellNumbers:
    """Numbers of one file with a comma in them, written with a point; sees the cells of each column in order.

    A column that has both ``1,5`` and ``1.234`` is refused: the point may divide thousands or decimals.
    """

    def __init__(self, file: str, delimiter: str) -> None:
        self._file, self._dividing = file, delimiter == ","
        self._commas: dict[str, tuple[int, str]] = {}
        self._either: dict[str, tuple[int, str]] = {}

    def read(self, name: str, first_row: int, text: Any) -> Any:
        """The cells of a column with plain numbers; ``first_row`` is the first one's row."""
        import pyarrow.compute as pc

        if not pc.any(pc.match_substring(text, ",")).as_py():
            return self._plain(name, first_row, text)
        trimmed = pc.utf8_trim_whitespace(text)
        if self._dividing:
            grouped = pc.match_substring_regex(trimmed, _GROUPED)
            return pc.if_else(grouped, pc.replace_substring(trimmed, ",", ""), text)
        simple, grouped = (pc.match_substring_regex(trimmed, form) for form in (_COMMA, _GROUPED_COMMA))
        self._note(self._commas, name, first_row, trimmed, pc.or_(simple, grouped))
        text = pc.if_else(grouped, pc.replace_substring(trimmed, ".", ""), text)
        text = pc.if_else(pc.or_(simple, grouped), pc.replace_substring(pc.utf8_trim_whitespace(text), ",", "."), text)
        return self._plain(name, first_row, text, pc.invert(pc.or_(simple, grouped)))

    def _plain(self, name: str, first_row: int, text: Any, among: Any = None) -> Any:
        """The cells, if those without a comma leave no doubt."""
        import pyarrow.compute as pc

        if self._dividing:
            return text
        if pc.any(pc.match_substring(text, ".")).as_py():
            trimmed = pc.utf8_trim_whitespace(text)
            either = pc.match_substring_regex(trimmed, _EITHER)
            if among is not None:
                either = pc.and_(either, among)
            self._note(self._either, name, first_row, trimmed, either)
            many = pc.match_substring_regex(trimmed, _ONLY_GROUPED)
            text = pc.if_else(many, pc.replace_substring(trimmed, ".", ""), text)
        if name in self._commas and name in self._either:
            (row, point), (other, comma) = self._either[name], self._commas[name]
            raise self._doubt(Place(self._file, name, row), point, comma, Place(self._file, row=other))
        return text

    def _note(self, seen: dict[str, tuple[int, str]], name: str, first_row: int, text: Any, found: Any) -> None:
        import pyarrow.compute as pc

        if name not in seen and (place := pc.index(found, True).as_py()) >= 0:
            seen[name] = (first_row + place, text[place].as_py())

    @staticmethod
    def _doubt(where: Place, point: str, comma: str, other: Place) -> DataError:
        what = f"the point of '{point}' may divide thousands or decimals, because {other.row_text} has '{comma}'"
        return where.fault(what, "write all numbers of the column alike")
