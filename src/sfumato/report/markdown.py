"""Text from files in Markdown: it may not mean anything there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any


def escaped(text: str) -> str:
    """Text without line breaks and without Markdown or HTML meaning."""
    flat = " ".join(str(text).split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#!])", r"\\\1", flat)


def code(text: str) -> str:
    """Text for between backticks."""
    return " ".join(str(text).split()).replace("`", "'").replace("<", "‹").replace(">", "›")


def table_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(escaped(cell) for cell in cells)} |"


def scalar(value: Any) -> str:
    """A value as YAML, which takes every JSON text but numbers such as 1e-05: to its readers they are texts."""
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("e", ".0e") if isinstance(value, float) and "e" in text and "." not in text else text
