"""Small pieces of HTML. Plain text comes in and leaves escaped; bodies, rows and cells are HTML already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from sfumato.report.wording import unbroken


def section(title: str, about: str, body: str) -> str:
    return f'<section><h2>{escape(title)}</h2><p class="about">{escape(about)}</p>{body}</section>'


def part(title: str, about: str, body: str) -> str:
    """A part of a section."""
    return f'<h3>{escape(title)}</h3><p class="about">{escape(about)}</p>{body}'


def fold(title: str, about: str, body: str) -> str:
    """A part that opens when its title is clicked."""
    return (
        f'<details class="fold"><summary>{escape(title)}</summary><p class="about">{escape(about)}</p>{body}</details>'
    )


def select(name: str, identity: str, options: list[str], chosen: int = 0) -> str:
    """A labelled choice among options; nothing where there is nothing to choose."""
    if len(options) < 2:
        return ""
    items = "".join(
        f'<option value="{i}"{" selected" if i == chosen else ""}>{escape(option)}</option>'
        for i, option in enumerate(options)
    )
    return f'<label class="choice">{escape(name)} <select id="{identity}">{items}</select></label>'


def table(kind: str, heads: Sequence[str], rows: Iterable[str], numbers: int = 0) -> str:
    """A table with these heads; the last ``numbers`` columns hold figures."""
    words = len(heads) - numbers
    names = [f'<th scope="col">{escape(head)}</th>' for head in heads[:words]]
    names += [f'<th scope="col" class="num">{escape(head)}</th>' for head in heads[words:]]
    return f'<table class="{kind}"><thead><tr>{"".join(names)}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def table_row(name: str, setting: str, cells: Iterable[str]) -> str:
    """A row headed by a run's name and, below it, its setting."""
    return f'<tr><th scope="row">{escape(name)}{note("setting", setting)}</th>{"".join(cells)}</tr>'


def cell(head: str, body: str) -> str:
    """A cell that repeats its head where the screen is too narrow for a table."""
    return f'<td data-label="{escape(head, quote=True)}">{body}</td>'


def note(kind: str, text: str) -> str:
    """Small text of a kind; nothing where it is empty."""
    return f'<span class="{kind}">{escape(text)}</span>' if text else ""


def wall(kind: str, rows: Iterable[str]) -> str:
    return f'<div class="wall {escape(kind)}">{"".join(rows)}</div>'


def wall_row(name: str, facts: str, pictures: Iterable[str], alt: str) -> str:
    """A name with some facts, and pictures beside it."""
    images = "".join(f'<img src="{uri}" alt="{escape(alt)} {i}">' for i, uri in enumerate(pictures, 1))
    return (
        f'<div class="wall-row"><div class="wall-name"><b>{escape(name)}</b>{note("facts", unbroken(facts))}</div>'
        f'<div class="wall-pictures">{images}</div></div>'
    )


def emphasised(item: str) -> str:
    """Prose with what stands before its first colon in bold."""
    head, colon, rest = item.partition(": ")
    return f"<b>{prose(head)}</b>{colon}{prose(rest)}" if colon else prose(item)


def prose(text: str) -> str:
    """Escaped text in which a number stays with its unit and a setting with its value."""
    return escape(unbroken(text))
