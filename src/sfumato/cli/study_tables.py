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
        interval = "" if row["ci"] is None else f"{figure(row['ci'][0])} … {figure(row['ci'][1])}"
        table.add_row(
            row["name"], row["metric"], figure(row["paper"]), figure(row["ours"]), interval, row["verdict"] or ""
        )
    return table
