"""Who is worst off: groups of people beside everybody, and the most exposed records for the owner."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from sfumato.core.threats import title
from sfumato.report.audited_runs import Exposed, Group, Run, in_order
from sfumato.report.html_pieces import cell, fold, note, table, table_row
from sfumato.report.wording import number

_MOST_GROUPS = 6


def exposure_table(group: Group) -> str:
    """A row for each run and threat, folded; nothing where no audit looked record by record."""
    rows = [_row(run, key, run.exposure[key]) for run in group.runs for key in in_order(run.exposure)]
    if not rows:
        return ""
    listed = "".join(_records(run, key, run.exposure[key]) for run in group.runs for key in in_order(run.exposure))
    return fold(
        "Who is worst off",
        "Leakage of the groups of each label by the attack that counts for everybody; intervals hold together for all "
        "groups. A group is marked as worse if it leaks more than the rest: in at most one of forty audits is any "
        "group marked wrongly. Groups of fewer than twenty people are pooled or left out. Another attack may be "
        "stronger against one group.",
        table("glance", ["Method", "Threat", "Groups, worst first", "People above the threshold"], rows) + listed,
    )


def _row(run: Run, key: str, found: Exposed) -> str:
    groups = sorted(found.groups, key=lambda one: -float(one["leakage"]))
    lines = "".join(f'<span class="setting">{text}</span>' for text in _lines(groups[:_MOST_GROUPS]))
    beyond = note("setting", f"and {len(groups) - _MOST_GROUPS} more") if len(groups) > _MOST_GROUPS else ""
    above = found.share_above
    said = f"of {above['people']:,} people leak more than {_percent(above['threshold'])}"
    figure = f'<span class="figure"><b>{_percent(above["share"])}</b></span>{note("setting", said)}'
    cells = [
        cell("Threat", f"{escape(title(key))}{note('setting', found.attack)}"),
        cell("Groups, worst first", lines + beyond if groups else note("absent", "no group is large enough")),
        cell("People above the threshold", figure),
    ]
    return table_row(run.mechanism, run.setting, cells)


def _lines(groups: list[dict[str, Any]]) -> Iterator[str]:
    for one in groups:
        low, high = (_percent(end) for end in one["leakage_ci"])
        mark = " <b>worse than the rest</b>" if one["worse"] else ""
        named = escape(f"{one['column']} = {one['value']} ({one['people']:,} people)")
        yield f"{named}: {_percent(one['leakage'])} [{low}, {high}]{mark}"


def _records(run: Run, key: str, found: Exposed) -> str:
    """The most exposed records, folded within the fold."""
    items = "".join(
        f"<li>{escape(str(one['id']))}: {_percent(one['leakage'])}, {escape(number(one['score'], found.metric))}</li>"
        for one in found.most_exposed
    )
    head = escape(f"Most exposed records of {run.title}: {title(key)}")
    return f'<details class="fold"><summary>{head}</summary><ol>{items}</ol></details>' if items else ""


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\u00a0%"
