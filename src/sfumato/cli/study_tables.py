"""Tables for ``sfumato reproduce``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from sfumato.cli.output import figure, new_table
from sfumato.studies.base import Measurement, Study


def study_list(studies: Sequence[Study | Measurement]) -> Table:
    """Name, data sets and claim of every study."""
    table = new_table("study", "data", "the paper says")
    for study in studies:
        table.add_row(study.name, ", ".join(study.data), study.statement)
    return table


def study_table(result: Mapping[str, Any]) -> Table:
    """The rows of a study: paper and ours side by side."""
    title = f"{result['study']} on {result['data']} at {result['scale']} scale"
    table = new_table("", "metric", numbers=("paper", "ours", "95 % interval", "holds"), title=title)
    verdict = {True: "yes", False: "no", None: ""}
    for row in result["rows"]:
        interval = f"{figure(row['ci'][0])} … {figure(row['ci'][1])}"
        table.add_row(
            row["name"], row["metric"], figure(row["paper"]), figure(row["ours"]), interval, verdict[row["holds"]]
        )
    return table
