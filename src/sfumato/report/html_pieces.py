"""Small pieces of HTML. What comes in is plain text and leaves escaped, but for bodies, which are HTML."""

from __future__ import annotations

from html import escape


def section(title: str, about: str, body: str) -> str:
    return f'<section><h2>{escape(title)}</h2><p class="about">{escape(about)}</p>{body}</section>'


def part(title: str, about: str, body: str) -> str:
    """A part of a section."""
    return f'<h3>{escape(title)}</h3><p class="about">{escape(about)}</p>{body}'


def select(name: str, identity: str, options: list[str], chosen: int = 0) -> str:
    """A labelled choice among options; nothing where there is nothing to choose."""
    if len(options) < 2:
        return ""
    items = "".join(
        f'<option value="{i}"{" selected" if i == chosen else ""}>{escape(option)}</option>'
        for i, option in enumerate(options)
    )
    return f'<label class="choice">{escape(name)} <select id="{identity}">{items}</select></label>'


def emphasised(item: str) -> str:
    """Prose with what stands before its first colon in bold."""
    head, colon, rest = item.partition(": ")
    return f"<b>{prose(head)}</b>{colon}{prose(rest)}" if colon else prose(item)


def prose(text: str) -> str:
    """Escaped text in which a number stays with its unit and a setting with its value."""
    return escape(text).replace(" %", "\u00a0%").replace(" = ", "\u00a0=\u00a0")
