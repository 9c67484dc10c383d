"""The front: utility against what the best attack gets, one mark per run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sfumato.core.score import Score
from sfumato.core.threats import LIST, RECONSTRUCTION, title
from sfumato.report.audited_runs import Group, Run, by_method, owner_gain
from sfumato.report.plots import DASHED, DOTTED, Figure, Mark, Reference, Style, error_bars, scatter
from sfumato.report.wording import ERRORS, direction, metric_name, named


def front(group: Group, key: str, looks: Mapping[str, Style], ids: Mapping[str, int]) -> Figure | None:
    """Utility against what the best attack on one threat gets; ``customdata`` holds the run's number.

    None where no run has both.
    """
    runs = [run for run in group.runs if run.use is not None and key in run.worst]
    if not runs:
        return None
    scores = [run.worst[key] for run in runs]
    like = scores[0]
    log = like.metric in ERRORS and any(score.value > 0 for score in scores)
    low, high = _span([*scores, *(run.worst[LIST] for run in runs if _has_list(run, key))], log=log)
    traces = _best_line([run for run in runs if run.defended], key, low)
    for method, own in by_method(runs).items():
        traces.append(_points(own, key, looks[method], ids, low))
        lists = [run for run in own if _has_list(run, key)]
        traces += [_list_points(lists, looks[method], ids, low)] if lists else []
    lines = _baseline_and_control(scores, log=log)
    whole = {
        "xaxis": utility_axis(runs),
        "yaxis": _attack_axis(key, like, low, high, log=log),
        "shapes": [line.shape(_reach(runs)) for line in lines],
        "annotations": [_note(line, like.metric, log=log) for line in lines],
        "showlegend": True,
    }
    return {"data": traces, "layout": whole}


def non_dominated(runs: Sequence[Run], key: str) -> list[Run]:
    """Runs that no other run beats in utility and in privacy, by rising utility."""
    kept: list[Run] = []
    for run in sorted(runs, key=lambda r: (r.use_value, owner_gain(r.judged(key))), reverse=True):
        if not kept or owner_gain(run.judged(key)) > owner_gain(kept[-1].judged(key)):
            kept.append(run)
    return kept[::-1]


def _best_line(runs: Sequence[Run], key: str, floor: float) -> list[Figure]:
    best = non_dominated(runs, key)
    if len(best) < 2 or len(by_method(runs)) < 2:
        return []
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "best overall",
            "x": [run.use_value for run in best],
            "y": [max(run.judged(key).value, floor) for run in best],
            "line": {"color": "var(--line)", "width": 9},
            "hoverinfo": "skip",
        }
    ]


def _points(runs: Sequence[Run], key: str, look: Style, ids: Mapping[str, int], floor: float) -> Figure:
    """The runs of one method; the line joins only those that are not dominated within it."""
    best = {run.name for run in non_dominated(runs, key)}
    ordered = sorted(runs, key=lambda run: (run.use_value, run.name))
    line = [run for run in ordered if run.name in best]
    loose = [run for run in ordered if run.name not in best]
    drawn = [*line, None, *loose] if loose else line
    marks = [None if run is None else _mark(run, key) for run in drawn]
    uses = [None if run is None or run.use is None else (run.use.value, run.use.ci) for run in drawn]
    return scatter(runs[0].mechanism, marks, look, 11, floor) | {
        "mode": "lines+markers",
        "customdata": [None if run is None else ids[run.name] for run in drawn],
        "error_x": error_bars(uses, look),
        "line": look.line,
    }


def _has_list(run: Run, key: str) -> bool:
    """Whether a list of guesses was tried, to be drawn beside the single guess on the same axis."""
    return key == RECONSTRUCTION and LIST in run.worst and run.worst[LIST].metric == run.worst[key].metric


def _list_points(runs: Sequence[Run], look: Style, ids: Mapping[str, int], floor: float) -> Figure:
    """Open marks below those of the single guess: the best of a list of guesses."""
    name = f"{runs[0].mechanism}, best of a list of d guesses"
    return scatter(name, [_mark(run, LIST) for run in runs], look, floor=floor) | {
        "customdata": [ids[run.name] for run in runs],
        "marker": look.open_marker(12, 2.5),
    }


def _mark(run: Run, key: str) -> Mark:
    score = run.worst[key]
    use = f"{named(run.use)}\n" if run.use is not None else ""
    told = f"{run.title}\n{use}{named(score)} by {score.attack}"
    return Mark(run.use_value, score.value, score.ci, told)


def _baseline_and_control(scores: Sequence[Score], *, log: bool) -> list[Reference]:
    """The references that can be drawn: on a logarithmic axis only what is above zero."""
    baselines = tuple(s.baseline for s in scores if s.baseline is not None and (s.baseline > 0 or not log))
    controls = tuple(s.control for s in scores if s.control is not None and (s.control > 0 or not log))
    lines = (
        Reference("sees nothing (baseline)", DASHED, baselines),
        Reference("no defence (control)", DOTTED, controls),
    )
    return [line for line in lines if line.values]


def _note(line: Reference, metric: str, *, log: bool) -> Figure:
    """The name and value of a reference, above its line."""
    high = line.ends[1]
    return {
        "y": math.log10(high) if log else high,
        "text": f"{line.name}: {line.span(metric)}",
    }


def utility_axis(runs: Sequence[Run]) -> Figure:
    """The x axis of all fronts."""
    use = runs[0].use
    utility = metric_name(use.metric).capitalize() if use else "Utility"
    who = "for whoever may read it" if any(run.rotated for run in runs) else "for others"
    text = f"{utility} {who} (higher is better)"
    shares = use is None or use.metric != "r2"
    return {"title": {"text": text}, "tickformat": ".1~%" if shares else "~g", "range": _reach(runs)}


def _attack_axis(key: str, like: Score, low: float, high: float, *, log: bool) -> Figure:
    metric = f"{metric_name(like.metric, like.threat)} of the best attack"
    axis: Figure = {
        "title": {"text": f"{title(key)}: {metric}\n({direction(like)})"},
        "type": "log" if log else "linear",
        "range": [math.log10(low), math.log10(high)] if log else [low, high],
        "tickformat": ".0%" if like.metric == "rate" else "~g",
    }
    return axis


def _span(scores: Sequence[Score], *, log: bool) -> tuple[float, float]:
    """The range of the y axis: all values, intervals, baselines and controls, and some air."""
    values = [v for s in scores for v in (s.value, *s.ci, s.baseline, s.control) if v is not None]
    if log:
        positive = [v for v in values if v > 0]
        return min(positive) / 1.8, max(positive) * 2.2
    low, high = min(values), max(values)
    air = max(0.08 * (high - low), 0.01)
    return low - air, high + 1.6 * air


def _reach(runs: Sequence[Run]) -> list[float]:
    """The range of the x axis: all utility intervals, never narrower than four points."""
    ends = [end for run in runs if run.use for end in run.use.ci]
    low, high = min(ends), max(ends)
    air = max(0.04 * (high - low), (0.04 - (high - low)) / 2, 0.002)
    return [low - air, min(high + air, max(high, 1.0) + 0.004)]
