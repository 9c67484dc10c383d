"""The front of utility against privacy, and released features in space."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sfumato.core.score import Score
from sfumato.core.threats import title
from sfumato.report.audited_runs import Group, Run, owner_gain
from sfumato.report.plot_style import (
    CLASS_COLOURS,
    Figure,
    Reference,
    Style,
    axis,
    error_bars,
    layout,
    marker,
    reference_lines,
    safe,
)
from sfumato.report.wording import direction, measured, metric_name

_LOGARITHMIC = {"mse", "l1"}
_SYMBOLS_3D = ("circle", "square", "diamond", "cross", "x", "circle-open", "square-open", "diamond-open")


def front(group: Group, key: str, looks: Mapping[str, Style], ids: Mapping[str, int]) -> Figure | None:
    """Utility against what the best attack on one threat gets; ``customdata`` holds the run's number.

    None where no run has both.
    """
    runs = [run for run in group.runs if run.use is not None and key in run.worst]
    if not runs:
        return None
    scores = [run.worst[key] for run in runs]
    like = scores[0]
    logarithmic = like.metric in _LOGARITHMIC and any(score.value > 0 for score in scores)
    lists = {run.name: found for run in runs if (found := _listed(run, key)) is not None}
    low, high = _span([*scores, *lists.values()], logarithmic=logarithmic)
    traces = _best_line([run for run in runs if run.defended], key, low)
    for method in dict.fromkeys(run.mechanism for run in runs):
        own = [run for run in runs if run.mechanism == method]
        traces.append(_points(own, key, looks[method], ids, low))
        listing = [run for run in own if run.name in lists]
        traces += [_list_points(listing, lists, looks[method], ids, low)] if listing else []
    shapes, notes = reference_lines(_baseline_and_control(scores), like.metric, _reach(runs), logarithmic=logarithmic)
    y: Figure = {
        "title": {"text": f"{_axis_name(key, like)}<br>({direction(like)})"},
        "type": "log" if logarithmic else "linear",
        "range": [math.log10(low), math.log10(high)] if logarithmic else [low, high],
        "tickformat": ".0%" if like.metric == "rate" else "~g",
    }
    if logarithmic and high / low > 30:
        y |= {"dtick": 1, "minor": {"dtick": "D1", "ticks": "outside", "ticklen": 3}}
    use = runs[0].use
    utility = metric_name(use.metric).capitalize() if use else "Utility"
    who = "for whoever may read it" if any(run.rotated for run in runs) else "for others"
    whole = layout() | {
        "xaxis": axis()
        | {"title": {"text": f"{utility} {who} (higher is better)"}, "tickformat": ".1~%", "range": _reach(runs)},
        "yaxis": axis() | y,
        "shapes": shapes,
        "annotations": notes,
        "hovermode": "closest",
        "margin": {"l": 84, "r": 16, "t": 12, "b": 60},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    }
    return {"data": traces, "layout": whole}


def space(run: Run) -> Figure | None:
    """Released features in three principal components; classes differ in symbol and in colour."""
    if run.features is None or run.features.method != "pca":
        return None
    features = run.features
    main = features.colours[features.label]
    traces = []
    for code, name in enumerate(main.classes):
        points = [p for p, label in zip(features.points, main.codes, strict=True) if label == code]
        if points:
            x, y, z = (list(column) for column in zip(*points, strict=True))
            traces.append(
                {
                    "type": "scatter3d",
                    "mode": "markers",
                    "name": safe(name),
                    "x": x,
                    "y": y,
                    "z": z,
                    "marker": {
                        "size": 4,
                        "opacity": 0.85,
                        "symbol": _SYMBOLS_3D[code % len(_SYMBOLS_3D)],
                        "color": CLASS_COLOURS[code % len(CLASS_COLOURS)],
                    },
                    "hoverinfo": "name",
                }
            )
    return {"data": traces, "label": features.label}


def space_layout() -> Figure:
    """The layout that all spaces share."""
    axes = {
        f"{name}axis": {
            "title": {"text": f"component {i}"},
            "showbackground": False,
            "gridcolor": "#d8dde5",
            "zerolinecolor": "#aab2bf",
            "showspikes": False,
            "tickfont": {"size": 10},
        }
        for i, name in enumerate("xyz", 1)
    }
    return layout() | {
        "scene": axes | {"aspectmode": "cube", "camera": {"eye": {"x": 1.35, "y": 1.35, "z": 0.85}}},
        "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
        "legend": {"itemsizing": "constant", "y": 0.95},
    }


def non_dominated(runs: Sequence[Run], key: str) -> list[Run]:
    """Runs that no other run beats in utility and in privacy, by rising utility."""
    kept: list[Run] = []
    for run in sorted(runs, key=lambda r: (_utility(r), owner_gain(r.judged(key))), reverse=True):
        if not kept or owner_gain(run.judged(key)) > owner_gain(kept[-1].judged(key)):
            kept.append(run)
    return kept[::-1]


def _best_line(runs: Sequence[Run], key: str, floor: float) -> list[Figure]:
    best = non_dominated(runs, key)
    if len(best) < 2 or len({run.mechanism for run in runs}) < 2:
        return []
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "best overall",
            "x": [_utility(run) for run in best],
            "y": [max(run.judged(key).value, floor) for run in best],
            "line": {"color": "#d3d9e2", "width": 9},
            "hoverinfo": "skip",
        }
    ]


def _points(runs: Sequence[Run], key: str, look: Style, ids: Mapping[str, int], floor: float) -> Figure:
    """The runs of one method; the line joins only those that are not dominated within it."""
    best = {run.name for run in non_dominated(runs, key)}
    ordered = sorted(runs, key=lambda run: (_utility(run), run.name))
    line = [run for run in ordered if run.name in best]
    loose = [run for run in ordered if run.name not in best]
    drawn = [*line, None, *loose] if loose else [*line]
    ys = [None if run is None else max(run.worst[key].value, floor) for run in drawn]
    uses = [None if run is None else run.use for run in drawn]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "connectgaps": False,
        "name": safe(runs[0].mechanism),
        "x": [None if use is None else use.value for use in uses],
        "y": ys,
        "customdata": [None if run is None else ids[run.name] for run in drawn],
        "text": ["" if run is None else _hover(run, key) for run in drawn],
        "hoverinfo": "text",
        "error_x": error_bars([(use.value, use.ci) if use else None for use in uses], look),
        "error_y": error_bars([(r.worst[key].value, r.worst[key].ci) if r else None for r in drawn], look, floor),
        "line": {"color": look.colour, "width": 2, "dash": look.dash},
        "marker": marker(look, 11),
    }


def _listed(run: Run, key: str) -> Score | None:
    """What a list of guesses gets, beside the single guess and on the same axis."""
    found = run.worst.get("list-reconstruction") if key == "reconstruction" else None
    return found if found is not None and found.metric == run.worst[key].metric else None


def _list_points(
    runs: Sequence[Run], lists: Mapping[str, Score], look: Style, ids: Mapping[str, int], floor: float
) -> Figure:
    """Open marks below those of the single guess: the best of a list of guesses."""
    scores = [lists[run.name] for run in runs]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": safe(f"{runs[0].mechanism}, best of a list of d guesses"),
        "x": [_utility(run) for run in runs],
        "y": [max(score.value, floor) for score in scores],
        "customdata": [ids[run.name] for run in runs],
        "text": [_hover(run, "list-reconstruction") for run in runs],
        "hoverinfo": "text",
        "error_y": error_bars([(score.value, score.ci) for score in scores], look, floor),
        "marker": {"symbol": f"{look.symbol}-open", "size": 12, "color": look.colour, "line": {"width": 2.5}},
    }


def _hover(run: Run, key: str) -> str:
    use, score = run.use, run.worst[key]
    lines = [f"<b>{safe(run.title)}</b>"]
    if use is not None:
        lines.append(f"{safe(metric_name(use.metric))} {measured(use)}")
    attack = safe(score.attack)
    lines.append(f"{safe(metric_name(score.metric, score.threat))} {measured(score)} by {attack}")
    return "<br>".join(lines)


def _baseline_and_control(scores: Sequence[Score]) -> tuple[Reference, Reference]:
    return (
        Reference("sees nothing (baseline)", "6px,4px", tuple(s.baseline for s in scores if s.baseline is not None)),
        Reference("no defence (control)", "2px,3px", tuple(s.control for s in scores if s.control is not None)),
    )


def _span(scores: Sequence[Score], *, logarithmic: bool) -> tuple[float, float]:
    """The range of the y axis: all values, intervals, baselines and controls, and some air."""
    values = [v for s in scores for v in (s.value, *s.ci, s.baseline, s.control) if v is not None]
    if logarithmic:
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


def _axis_name(key: str, score: Score) -> str:
    metric = f"{metric_name(score.metric, score.threat)} of the best attack"
    return f"{safe(title(key))}: {safe(metric)}"


def _utility(run: Run) -> float:
    return run.use.value if run.use else -math.inf
