"""Tables for ``sfumato reproduce``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from sfumato.cli.show import figure
from sfumato.studies.base import Study


def study_list(studies: Sequence[Study]) -> Table:
    """Name, data sets and claim of every study."""
    table = Table()
    for column in ("study", "data", "the paper says"):
        table.add_column(column)
    for study in studies:
        table.add_row(study.name, ", ".join(study.data), study.statement)
    return table


def study_table(result: Mapping[str, Any]) -> Table:
    """The rows of a study: paper and ours side by side."""
    table = Table(title=f"{result['study']} on {result['data']} at {result['scale']} scale", title_justify="left")
    for column in ("", "metric"):
        table.add_column(column)
    for column in ("paper", "ours", "95 % interval", "holds"):
        table.add_column(column, justify="right")
    verdict = {True: "yes", False: "no", None: ""}
    for row in result["rows"]:
        interval = f"{figure(row['ci'][0])} … {figure(row['ci'][1])}"
        table.add_row(
            row["name"], row["metric"], figure(row["paper"]), figure(row["ours"]), interval, verdict[row["holds"]]
        )
    return table
