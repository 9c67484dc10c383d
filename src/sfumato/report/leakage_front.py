"""Use against leakage: the same marks for every threat, on one scale from 0 to 100 %."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sfumato.core.threats import title
from sfumato.report.audited_runs import Group, Run, by_method
from sfumato.report.front import utility_axis
from sfumato.report.plots import Figure, Mark, Style, error_bars, scatter
from sfumato.report.wording import leak, named


def leakage_front(group: Group, key: str, looks: Mapping[str, Style], ids: Mapping[str, int]) -> Figure | None:
    """None where no run has both a use and a leakage by this threat."""
    runs = [
        run for run in group.runs if run.use is not None and key in run.worst and run.worst[key].leakage is not None
    ]
    if not runs:
        return None
    y = {"title": {"text": f"leakage: {title(key)}\n(lower is better)"}, "range": [-0.04, 1.04], "tickformat": ".0%"}
    traces = [_method(own, key, looks[method], ids) for method, own in by_method(runs).items()]
    return {"data": traces, "layout": {"xaxis": utility_axis(runs), "yaxis": y, "showlegend": True}}


def _method(runs: Sequence[Run], key: str, look: Style, ids: Mapping[str, int]) -> Figure:
    """The runs of one method, joined by rising use."""
    ordered = sorted(runs, key=lambda run: (run.use_value, run.name))
    uses = [None if run.use is None else (run.use.value, run.use.ci) for run in ordered]
    return scatter(runs[0].mechanism, [_mark(run, key) for run in ordered], look, 11) | {
        "mode": "lines+markers",
        "customdata": [ids[run.name] for run in ordered],
        "error_x": error_bars(uses, look),
        "line": look.line,
    }


def _mark(run: Run, key: str) -> Mark:
    score = run.worst[key]
    share = float(score.leakage or 0.0)
    use = f"{named(run.use)}\n" if run.use is not None else ""
    return Mark(run.use_value, share, score.leakage_ci or (share, share), f"{run.title}\n{use}leakage {leak(score)}")
