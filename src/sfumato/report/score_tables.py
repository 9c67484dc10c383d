"""Tables of scores as HTML and as CSV, and the small scales that put a score between its references."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sfumato.core.score import Score
from sfumato.core.threats import title
from sfumato.report.audited_runs import Group, Run
from sfumato.report.page_values import Cell, RunRow, Table, Track
from sfumato.report.wording import ERRORS, interval, leak, metric_name, number, reference

_COLUMNS = (
    "data", "run", "method", "setting", "threat", "target", "attack", "metric", "better_for_owner", "value",
    "ci_low", "ci_high", "baseline", "control", "n", "primary", "worst", "leakage", "leakage_low", "leakage_high",
    "leakage_by", "releases", "group", "note",
)  # fmt: skip


def glance(group: Group) -> Table:
    """One row per method (its representative run, and sometimes one more): each score between its references."""
    rows = []
    useful = any(run.use is not None or not run.unlinked for run in group.runs)
    for run in (run for method in group.methods for run in group.shown(method)):
        cells = [glance_cell("Utility", _with_control(run), mirrored=True)] if useful else []
        absent = "does not apply" if run.traits.synthetic else "not measured"
        cells += [glance_cell(title(key), run.worst.get(key), absent=absent) for key in group.glanced]
        rows.append(RunRow(run.mechanism, run.setting, tuple(cells)))
    heads = ["Method", "Utility"] if useful else ["Release"]
    kind = "glance" if useful else "glance releases"
    return Table(kind, (*heads, *(title(key) for key in group.glanced)), tuple(rows))


def scale(score: Score, *, mirrored: bool = False) -> Track | None:
    """A track between two references, the interval as a bar, the value as a mark.

    The end on the right is the good one for the owner. Without both references there is no scale.
    """
    bad, good = (score.baseline, score.control) if mirrored else (score.control, score.baseline)
    if bad is None or good is None or bad == good:
        return None
    values = [bad, good, score.value, *score.ci]
    if score.metric in ERRORS and min(bad, good, score.value) > 0:
        values = [math.log10(max(v, 1e-12)) for v in values]
    low, high = min(values[:3]), max(values[:3])
    shares = [(min(max(value, low), high) - low) / (high - low) for value in values]
    places = [8 + 184 * (share if values[1] > values[0] else 1 - share) for share in shares]
    left, right = sorted(places[3:])
    return Track((places[0], places[1]), (left, right), places[2])


@dataclass(frozen=True)
class ScoreRow:
    """One score in words; ``kind`` says how it is set off: primary or not, the one that the run is judged by, the first
    of its threat."""

    kind: str
    threat: str
    attack: str
    worst: bool
    metric: str
    arrow: str
    value: str
    figures: tuple[str, ...]


def score_rows(run: Run) -> tuple[ScoreRow, ...]:
    """Every score of a run, grouped by threat, with references beside the value."""
    by_threat: dict[str, list[Score]] = {}
    for score in run.scores:
        key = score.threat if score.about is None else f"{score.threat}:{score.about}"
        by_threat.setdefault(key, []).append(score)
    rows = []
    for key, scores in by_threat.items():
        ordered = sorted(scores, key=lambda s: not s.primary)
        rows += [_row(run, key, score, first=i == 0) for i, score in enumerate(ordered)]
    return tuple(rows)


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
            writer.writerow([*map(_inert, text), *map(_ten_digits, (*figures, *flags, *leakage)), *said])
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


def glance_cell(name: str, score: Score | None, *, mirrored: bool = False, absent: str = "not measured") -> Cell:
    """A value, its interval and its place between its references; ``mirrored`` where more is better for everybody."""
    if score is None:
        return Cell(name, absent=absent)
    control, baseline = reference(score.control, score.metric), reference(score.baseline, score.metric)
    return Cell(
        name,
        figure=number(score.value, score.metric),
        ci=interval(score),
        unit=metric_name(score.metric, score.threat),
        leak=f"leakage {leak(score)}" if score.leakage is not None else "",
        scale=scale(score, mirrored=mirrored),
        ends=(f"guess {baseline}", f"raw {control}")
        if mirrored
        else (f"no defence {control}", f"sees nothing {baseline}"),
    )


def _row(run: Run, key: str, score: Score, *, first: bool) -> ScoreRow:
    worst = is_worst(run, score)
    student = score.threat == "utility" and score.metric == "accuracy"
    shown = score.primary or student or score.threat in ("information", "fidelity")
    figures = [interval(score), *(reference(v, score.metric) for v in (score.baseline, score.control))]
    return ScoreRow(
        kind=("primary" if shown else "secondary") + (" worst" if worst else "") + (" first" if first else ""),
        threat=title(key),
        attack=score.attack,
        worst=worst,
        metric=metric_name(score.metric, score.threat),
        arrow="↑" if score.better_for_owner == "higher" else "↓",
        value=number(score.value, score.metric),
        figures=(*figures, leak(score) or "–", f"{score.n:,}"),
    )


def _ten_digits(value: float | str | None) -> str:
    """A figure without digits that nobody measured; None is written as ""."""
    return "" if value is None else f"{value:.10g}" if isinstance(value, float) else str(value)


def _inert(text: str) -> str:
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
