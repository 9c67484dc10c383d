"""Leakage over the number of releases of the same records, one panel a threat."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.core.score import Score, worst_by_threat
from sfumato.core.threats import rank, title
from sfumato.report import plots
from sfumato.report.audited_runs import Group, Run
from sfumato.report.plots import Board, Figure, Mark, Style
from sfumato.report.wording import count, leak, named

_Curves = Mapping[str, Mapping[int, Score]]
"""Of one run: by threat (a key of ``Run.worst``) and number of releases."""


def averages(group: Group, looks: Mapping[str, Style]) -> Board | None:
    """What the mean of several releases gives away beside a single one; None where that was not measured."""
    runs = [run for run in group.runs if run.repeated]
    curves = {run.title: _curves(run) for run in runs}
    threats = sorted({key for each in curves.values() for key in each}, key=rank)
    if not threats:
        return None
    drawn = {run.title: looks[run.mechanism] for run in runs}
    if len({run.mechanism for run in runs}) < len(runs):
        drawn = plots.styles(list(curves))
    key = [drawn[name].entry(name) for name in curves]
    panels = [
        _panel(threat, {name: each[threat] for name, each in curves.items() if threat in each}, drawn)
        for threat in threats
    ]
    return Board(
        "Several releases of one record",
        "How leakage grows if the same records are released several times and an attacker averages: at 1 the best "
        "attack on a single release, then the strongest readers of the mean. Bars are 95 % intervals.",
        "curves",
        "",
        {"releases": {"key": key, "panels": panels}},
    )


def _curves(run: Run) -> _Curves:
    found: dict[str, dict[int, Score]] = {}
    for releases in sorted({score.releases for score in run.repeated}):
        for key, score in worst_by_threat(s for s in run.repeated if s.releases == releases).items():
            first = {1: run.worst[key]} if key in run.worst else {}
            found.setdefault(key, first)[releases] = score
    graded = {key: {n: score for n, score in each.items() if score.leakage is not None} for key, each in found.items()}
    return {key: each for key, each in graded.items() if len(each) > 1}


def _panel(threat: str, curves: Mapping[str, Mapping[int, Score]], looks: Mapping[str, Style]) -> Figure:
    traces = []
    for name, scores in curves.items():
        marks = [_mark(name, releases, score) for releases, score in scores.items()]
        line = {"mode": "lines+markers", "line": looks[name].line}
        traces.append(plots.scatter(name, marks, looks[name]) | line)
    x = plots.tried_axis(sorted({float(n) for scores in curves.values() for n in scores}), "releases of each record")
    y = {"title": {"text": "leakage"}, "tickformat": ".0%", "rangemode": "tozero"}
    return plots.panel(title(threat), "lower is better for the owner", traces, plots.panel_layout(x, y, []))


def _mark(name: str, releases: int, score: Score) -> Mark:
    value = score.leakage or 0.0
    told = f"{name}\n{count(releases, 'release')}: leakage {leak(score)}"
    return Mark(releases, value, score.leakage_ci or (value, value), f"{told}\n{named(score)}")
