"""Tables of scores as HTML and as CSV, and the small scales that put a score between its references."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import replace
from html import escape

from sfumato.core.score import Score
from sfumato.core.threats import title
from sfumato.report.audited_runs import Group, Run
from sfumato.report.html_pieces import cell, note, table, table_row
from sfumato.report.wording import ERRORS, direction, interval, leak, metric_name, number, reference

_COLUMNS = (
    "data", "run", "method", "setting", "threat", "target", "attack", "metric", "better_for_owner", "value",
    "ci_low", "ci_high", "baseline", "control", "n", "primary", "worst", "leakage", "leakage_low", "leakage_high",
    "leakage_by", "releases", "group", "note",
)  # fmt: skip


def glance(group: Group) -> str:
    """One row per method (its representative run, and sometimes one more): each score between its references."""
    rows = []
    useful = any(run.use is not None or not run.unlinked for run in group.runs)
    for run in (run for method in group.methods for run in group.shown(method)):
        cells = [glance_cell("Utility", _with_control(run), mirrored=True)] if useful else []
        absent = "does not apply" if run.traits.synthetic else "not measured"
        cells += [glance_cell(title(key), run.worst.get(key), absent=absent) for key in group.glanced]
        rows.append(table_row(run.mechanism, run.setting, cells))
    heads = ["Method", "Utility"] if useful else ["Release"]
    kind = "glance" if useful else "glance releases"
    return table(kind, [*heads, *(title(key) for key in group.glanced)], rows)


def scale(score: Score, *, mirrored: bool = False) -> str:
    """An inline SVG: a track between two references, the interval as a bar, the value as a mark.

    The end on the right is the good one for the owner. Without both references there is no scale.
    """
    bad, good = (score.baseline, score.control) if mirrored else (score.control, score.baseline)
    if bad is None or good is None or bad == good:
        return ""
    values = [bad, good, score.value, *score.ci]
    if score.metric in ERRORS and min(bad, good, score.value) > 0:
        values = [math.log10(max(v, 1e-12)) for v in values]
    low, high = min(values[:3]), max(values[:3])
    shares = [(min(max(value, low), high) - low) / (high - low) for value in values]
    places = [8 + 184 * (share if values[1] > values[0] else 1 - share) for share in shares]
    left, right = sorted(places[3:])
    ends = "".join(f'<line x1="{x:.1f}" y1="4" x2="{x:.1f}" y2="16" class="end"/>' for x in places[:2])
    return (
        '<svg class="scale" viewBox="0 0 200 20" aria-hidden="true" preserveAspectRatio="none">'
        f'<line x1="{places[0]:.1f}" y1="10" x2="{places[1]:.1f}" y2="10" class="track"/>{ends}'
        f'<rect x="{left:.1f}" y="7" width="{max(right - left, 1):.1f}" height="6" class="span"/>'
        f'<line x1="{places[2]:.1f}" y1="2" x2="{places[2]:.1f}" y2="18" class="mark"/></svg>'
    )


def score_table(group: Group) -> str:
    """Every score of every run, grouped by method and threat, with references beside the value."""
    bodies = "".join(_body(run) for run in group.runs)
    return (
        '<div class="scroll" role="region" tabindex="0" aria-label="Table of all scores">'
        '<table class="scores"><thead><tr><th scope="col">Threat</th><th scope="col">Attack or task</th>'
        '<th scope="col">Metric</th><th scope="col" class="num">Value</th>'
        '<th scope="col" class="num">95 % interval</th>'
        '<th scope="col" class="num">Baseline<small>sees nothing</small></th>'
        '<th scope="col" class="num">Control<small>no defence</small></th>'
        '<th scope="col" class="num">Leakage<small>of the best undefended</small></th>'
        f'<th scope="col" class="num">n</th></tr></thead>{bodies}</table></div>'
    )


def scores_csv(groups: Sequence[Group]) -> str:
    """All scores as CSV; text that a spreadsheet would run as a formula is made plain text."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for run in (run for group in groups for run in group.runs):
        for score in (*run.scores, *run.repeated):
            text = [run.data, run.name, run.mechanism, run.setting, score.threat, score.target or ""]
            text += [score.attack, score.metric, score.better_for_owner]
            figures = (score.value, *score.ci, score.baseline, score.control, score.n)
            flags = (int(score.primary), int(is_worst(run, score)))
            leakage = (score.leakage, *(score.leakage_ci or (None, None)), score.leakage_by, score.releases)
            said = map(_inert, (score.group or "", score.note))
            writer.writerow([*map(_inert, text), *figures, *flags, *leakage, *said])  # None is written as ""
    return stream.getvalue()


def is_worst(run: Run, score: Score) -> bool:
    """Whether this is the score that the run is judged by."""
    return any(
        (worst.attack, worst.threat, worst.metric, worst.target)
        == (score.attack, score.threat, score.metric, score.target)
        for worst in run.worst.values()
    )


def _with_control(run: Run) -> Score | None:
    """What others can do; where the classifier has no control (the mechanism's own), that of a fresh one serves."""
    use = run.use
    if use is None or use.control is not None:
        return use
    controls = [s.control for s in run.utility if s.metric == use.metric and s.target == use.target and s.control]
    return replace(use, control=max(controls)) if controls else use


def glance_cell(name: str, score: Score | None, *, mirrored: bool = False, absent: str = "not measured") -> str:
    """A value, its interval and its place between its references; ``mirrored`` where more is better for everybody."""
    if score is None:
        return cell(name, note("absent", absent))
    ends = [
        f"no defence {reference(score.control, score.metric)}",
        f"sees nothing {reference(score.baseline, score.metric)}",
    ]
    if mirrored:
        ends = [f"guess {reference(score.baseline, score.metric)}", f"raw {reference(score.control, score.metric)}"]
    leaked = note("leak", f"leakage {leak(score)}") if score.leakage is not None else ""
    return cell(
        name,
        f'<span class="figure"><b>{escape(number(score.value, score.metric))}</b> {note("ci", interval(score))} '
        f"{note('unit', metric_name(score.metric, score.threat))}</span>{leaked}{scale(score, mirrored=mirrored)}"
        f'<span class="ends"><span>{escape(ends[0])}</span><span>{escape(ends[1])}</span></span>',
    )


def _body(run: Run) -> str:
    setting = f" {note('setting', run.setting)}" if run.setting else ""
    rows = [f'<tr class="run"><th colspan="9" scope="rowgroup">{escape(run.mechanism)}{setting}</th></tr>']
    by_threat: dict[str, list[Score]] = {}
    for score in run.scores:
        key = score.threat if score.about is None else f"{score.threat}:{score.about}"
        by_threat.setdefault(key, []).append(score)
    for key, scores in by_threat.items():
        ordered = sorted(scores, key=lambda s: not s.primary)
        rows += [_row(run, key, score, first=i == 0) for i, score in enumerate(ordered)]
    return f"<tbody>{''.join(rows)}</tbody>"


def _row(run: Run, key: str, score: Score, *, first: bool) -> str:
    worst = is_worst(run, score)
    mark = ' <span class="badge">worst</span>' if worst else ""
    student = score.threat == "utility" and score.metric == "accuracy"
    shown = score.primary or student or score.threat in ("information", "fidelity")
    kind = ("primary" if shown else "secondary") + (" worst" if worst else "") + (" first" if first else "")
    figures = [interval(score), *(reference(v, score.metric) for v in (score.baseline, score.control))]
    figures += [leak(score) or "–", f"{score.n:,}"]
    cells = "".join(f'<td class="num">{escape(figure)}</td>' for figure in figures)
    arrow = "↑" if score.better_for_owner == "higher" else "↓"
    return (
        f'<tr class="{kind}"><td class="threat">{escape(title(key))}</td>'
        f'<th scope="row">{escape(score.attack)}{mark}</th>'
        f"<td>{escape(metric_name(score.metric, score.threat))} "
        f'<span class="arrow" title="{escape(direction(score))}">{arrow}</span></td>'
        f'<td class="num value">{escape(number(score.value, score.metric))}</td>{cells}</tr>'
    )


def _inert(text: str) -> str:
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
