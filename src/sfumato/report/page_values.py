"""What the page's sections consist of: plain values that the templates turn into HTML. No value holds markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sfumato.report.wording import unbroken


@dataclass(frozen=True)
class Track:
    """A track 200 wide between two references: where they end, the interval, and the mark; the right end is good."""

    ends: tuple[float, float]
    span: tuple[float, float]
    mark: float


@dataclass(frozen=True)
class Cell:
    """One cell of a table: ``text``, or a ``figure`` with what belongs to it, or why there is none (``absent``).

    ``head`` is the column's, repeated where the screen is too narrow for a table; ``lines`` stand below one another.
    """

    head: str
    text: str = ""
    figure: str = ""
    ci: str = ""
    unit: str = ""
    badge: str = ""
    leak: str = ""
    after: str = ""
    link: str = ""
    lines: tuple[Line, ...] = ()
    scale: Track | None = None
    ends: tuple[str, ...] = ()
    absent: str = ""
    shade: int | None = None


@dataclass(frozen=True)
class Line:
    """Small text, with what is to be stressed at its end."""

    text: str
    stressed: str = ""


def lines(*texts: str) -> tuple[Line, ...]:
    """A line for each text that is not empty."""
    return tuple(Line(text) for text in texts if text)


@dataclass(frozen=True)
class RunRow:
    """A row headed by a run's name and, below it, its setting."""

    name: str
    setting: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    form: ClassVar[str] = "table"
    kind: str
    heads: tuple[str, ...]
    rows: tuple[RunRow, ...]


@dataclass(frozen=True)
class Strip:
    """A name with some facts, and pictures beside it."""

    name: str
    facts: str
    pictures: Sequence[str]
    alt: str


@dataclass(frozen=True)
class Wall:
    """The same records in rows; ``title`` and ``aside`` stand above where there are several walls."""

    form: ClassVar[str] = "wall"
    kind: str
    rows: tuple[Strip, ...]
    title: str = ""
    aside: str = ""


@dataclass(frozen=True)
class Charts:
    """Small charts that the script draws: the number of the board, what is chosen, and the names to choose from."""

    form: ClassVar[str] = "charts"
    number: int
    kind: str
    choice: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Items:
    """A list of sentences, with numbers if they are in an order."""

    form: ClassVar[str] = "items"
    items: tuple[str, ...]
    title: str = ""
    numbered: bool = False


@dataclass(frozen=True)
class Fold:
    """Something that opens when its title is clicked."""

    form: ClassVar[str] = "fold"
    title: str
    about: str
    content: tuple[Piece, ...]


@dataclass(frozen=True)
class Passage:
    """A part of a section under a heading of its own."""

    form: ClassVar[str] = "part"
    title: str
    about: str
    content: tuple[Piece, ...] = ()


@dataclass(frozen=True)
class MessagePictures:
    """The d components of a few channels of a few messages, beside the records that they were sent for."""

    form: ClassVar[str] = "message"
    title: str
    aside: str
    kind: str
    heads: tuple[str, ...]
    rows: tuple[MessageRow, ...]


@dataclass(frozen=True)
class MessageRow:
    """A record, and for each channel the pictures of its components with what they show."""

    picture: str
    alt: str
    channels: tuple[tuple[tuple[str, str], ...], ...]


@dataclass(frozen=True)
class QueryTable:
    """Every query to the private records: part, name, and four figures each."""

    form: ClassVar[str] = "ledger"
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Space:
    """Points in three dimensions that the script draws: its number, and the runs to choose from."""

    form: ClassVar[str] = "space"
    number: int
    label: str
    options: tuple[str, ...]
    start: int


@dataclass(frozen=True)
class Section:
    """A section that opens when its heading is clicked, or is open from the start."""

    title: str
    about: str
    content: tuple[Piece, ...] = ()
    opened: bool = False


Piece = Table | Wall | Charts | Items | Fold | Passage | MessagePictures | QueryTable | Space
"""What a section may consist of; templates tell the forms apart by ``form``."""


def strip(name: str, facts: str, pictures: Sequence[str], alt: str) -> Strip:
    """A strip whose figures stay with their units."""
    return Strip(name, unbroken(facts), pictures, alt)
