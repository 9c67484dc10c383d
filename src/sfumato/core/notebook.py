"""What a notebook shows of a value: a small HTML table, escaped, without a style sheet of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

_CELL = 'style="text-align:left;padding:.2em .8em .2em 0"'


def facts_table(title: str, facts: Mapping[str, object]) -> str:
    """A title and a table of name and value; empty values are left out."""
    rows = (
        f'<tr><th scope="row" {_CELL}>{escape(name)}</th><td {_CELL}>{escape(str(value))}</td></tr>'
        for name, value in facts.items()
        if value not in ("", None)
    )
    return f"<div><b>{escape(title)}</b><table>{''.join(rows)}</table></div>"


def rows_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A title and a table with heads."""
    top = "".join(f'<th scope="col" {_CELL}>{escape(head)}</th>' for head in heads)
    body = "".join(f"<tr>{''.join(f'<td {_CELL}>{escape(str(value))}</td>' for value in row)}</tr>" for row in rows)
    return f"<div><b>{escape(title)}</b><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
