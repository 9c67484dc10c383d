"""Who is worst off: groups of people beside everybody, and the most exposed records for the owner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sfumato.core.threats import title
from sfumato.report.audited_runs import Exposed, Group, Run, in_order
from sfumato.report.page_values import Cell, Fold, Items, Line, RunRow, Table
from sfumato.report.wording import number

_MOST_GROUPS = 6


def exposure_table(group: Group) -> tuple[Fold, ...]:
    """A row for each run and threat, folded; nothing where no audit looked record by record."""
    rows = [_row(run, key, run.exposure[key]) for run in group.runs for key in in_order(run.exposure)]
    if not rows:
        return ()
    listed = [_records(run, key, run.exposure[key]) for run in group.runs for key in in_order(run.exposure)]
    heads = ("Method", "Threat", "Groups, worst first", "People above the threshold")
    worst_off = Fold(
        "Who is worst off",
        "Leakage of the groups of each label by the attack that counts for everybody; intervals hold together for all "
        "groups. A group is marked as worse if it leaks more than the rest: in at most one of forty audits is any "
        "group marked wrongly. Groups of fewer than twenty people are pooled or left out. Another attack may be "
        "stronger against one group.",
        (Table("glance", heads, tuple(rows)), *(fold for fold in listed if fold is not None)),
    )
    return (worst_off,)


def _row(run: Run, key: str, found: Exposed) -> RunRow:
    groups = sorted(found.groups, key=lambda one: -float(one["leakage"]))
    beyond = [Line(f"and {len(groups) - _MOST_GROUPS} more")] if len(groups) > _MOST_GROUPS else []
    above = found.share_above
    said = f"of {above['people']:,} people leak more than {_percent(above['threshold'])}"
    cells = (
        Cell("Threat", title(key), lines=(Line(found.attack),)),
        Cell(
            "Groups, worst first",
            lines=(*_lines(groups[:_MOST_GROUPS]), *beyond),
            absent="" if groups else "no group is large enough",
        ),
        Cell("People above the threshold", figure=_percent(above["share"]), lines=(Line(said),)),
    )
    return RunRow(run.mechanism, run.setting, cells)


def _lines(groups: list[dict[str, Any]]) -> Iterator[Line]:
    for one in groups:
        low, high = (_percent(end) for end in one["leakage_ci"])
        named = f"{one['column']} = {one['value']} ({one['people']:,} people)"
        worse = "worse than the rest" if one["worse"] else ""
        yield Line(f"{named}: {_percent(one['leakage'])} [{low}, {high}]", worse)


def _records(run: Run, key: str, found: Exposed) -> Fold | None:
    """The most exposed records, folded within the fold."""
    items = tuple(
        f"{one['id']}: {_percent(one['leakage'])}, {number(one['score'], found.metric)}" for one in found.most_exposed
    )
    head = f"Most exposed records of {run.title}: {title(key)}"
    return Fold(head, "", (Items(items, numbered=True),)) if items else None


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\u00a0%"
