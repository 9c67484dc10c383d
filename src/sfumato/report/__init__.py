"""Reports: one self-contained HTML page or a Markdown card from run folders. Reads, recomputes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["build_report", "render_card"]


def build_report(folders: Sequence[Path], out: Path, *, title: str | None = None) -> Path:
    """Write one self-contained HTML page about audited run folders (or sweep folders) to ``out``; return it.

    Raises DataError where a folder is not a run, was not audited, or where there are too many runs for one page.
    """
    from sfumato.core.run_folder import atomic
    from sfumato.report.collect import collect
    from sfumato.report.page import render_page

    text = render_page(collect(folders), title=title)
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic(out) as part:
        part.write_text(text, encoding="utf-8")
    return out


def render_card(run: Path) -> str:
    """The release card of one audited run folder, in Markdown."""
    from sfumato.report.card import card
    from sfumato.report.collect import read_run

    return card(read_run(run))
