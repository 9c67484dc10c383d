"""Tables for ``sfumato reproduce``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from sfumato.cli.output import figure, new_table
from sfumato.studies.base import Measurement, Study


def study_list(studies: Sequence[Study | Measurement]) -> Table:
    """Name, data sets and purpose of every study."""
    table = new_table("study", "data", "what is measured")
    for study in studies:
        table.add_row(study.name, ", ".join(study.data), study.about)
    return table


def study_table(result: Mapping[str, Any]) -> Table:
    """The rows of a study: paper and ours side by side."""
    title = f"{result['study']} on {result['data']} at {result['scale']} scale"
    table = new_table("", "metric", numbers=("paper", "ours", "95 % interval", "verdict"), title=title)
    for row in result["rows"]:
        ends = _ends(row["ci"])
        table.add_row(row["name"], row["metric"], figure(row["paper"]), figure(row["ours"]), ends, row["verdict"] or "")
    return table


def _ends(ci: Sequence[float | None] | None) -> str:
    """Both ends of an interval, or the one that a bound has."""
    low, high = (None, None) if ci is None else ci
    if low is None and high is None:
        return ""
    if high is None:
        return f"≥ {figure(low)}"
    return f"{figure(low)} … {figure(high)}" if low is not None else f"≤ {figure(high)}"
