"""Plotly figures as plain JSON values. Text from files is escaped: Plotly reads a subset of HTML in it."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.core.score import Score
from sfumato.report.collect import Group, Run
from sfumato.report.verdict import UNDEFENDED
from sfumato.report.words import direction, measured, metric_name, reference, threat_name

Figure = dict[str, Any]

INK = "#1c2430"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_LOGARITHMIC = {"mse", "l1"}
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "triangle-down", "pentagon", "hexagon", "x")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
# Dark enough for thin lines on white (contrast above 4.5), apart in hue for the common kinds of colour blindness.
_COLOURS = (
    "#0b5fa5", "#b4460f", "#1d7a4a", "#8b3a8f", "#8a6500", "#b0124f", "#2c6e7f", "#5a4fcf", "#555f6b", "#7a3b12",
)  # fmt: skip
_SYMBOLS_3D = ("circle", "square", "diamond", "cross", "x", "circle-open", "square-open", "diamond-open")
_CLASS_COLOURS = (
    "#0b5fa5", "#d1661b", "#1d7a4a", "#8b3a8f", "#a67c00", "#c2185b", "#3aa6c9", "#5a4fcf", "#6b7480", "#7a3b12",
)  # fmt: skip


@dataclass(frozen=True)
class Style:
    """How one method is drawn everywhere on the page."""

    symbol: str
    dash: str
    colour: str


def styles(methods: Sequence[str]) -> dict[str, Style]:
    """A style for each method: no two share both symbol and dash."""
    drawn: dict[str, Style] = {}
    others = [name for name in methods if name != UNDEFENDED]
    if UNDEFENDED in methods:
        drawn[UNDEFENDED] = Style("x-thin", "solid", INK)
    for i, name in enumerate(others):
        drawn[name] = Style(_SYMBOLS[i % 10], _DASHES[i % 6], _COLOURS[i % 10])
    return drawn


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
    low, high = _span(scores, logarithmic=logarithmic)
    traces = _best_line([run for run in runs if run.mechanism != UNDEFENDED], key, low)
    for method in dict.fromkeys(run.mechanism for run in runs):
        traces.append(_points([r for r in runs if r.mechanism == method], key, looks[method], ids, low))
    shapes, notes = _references(scores, logarithmic=logarithmic)
    axis: Figure = {
        "title": {"text": f"{_axis_name(key, like)}<br>({direction(like)})"},
        "type": "log" if logarithmic else "linear",
        "range": [math.log10(low), math.log10(high)] if logarithmic else [low, high],
        "tickformat": ".0%" if like.metric == "rate" else None,
        "exponentformat": "none",
    }
    if logarithmic and high / low > 30:
        axis |= {"dtick": 1, "minor": {"dtick": "D1", "ticks": "outside", "ticklen": 3}}
    use = runs[0].use
    utility = metric_name(use.metric).capitalize() if use else "Utility"
    layout = _layout() | {
        "xaxis": _axis()
        | {"title": {"text": f"{utility} for others (higher is better)"}, "tickformat": ".1~%", "range": _reach(runs)},
        "yaxis": _axis() | axis,
        "shapes": shapes,
        "annotations": notes,
        "hovermode": "closest",
        "margin": {"l": 84, "r": 16, "t": 12, "b": 60},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    }
    return {"data": traces, "layout": layout}


def space(run: Run) -> Figure | None:
    """Released features in three principal components; classes differ in symbol and in colour."""
    if run.features is None:
        return None
    features = run.features
    traces = []
    for code, name in enumerate(features.classes):
        points = [p for p, label in zip(features.points, features.labels, strict=True) if label == code]
        if points:
            x, y, z = (list(column) for column in zip(*points, strict=True))
            traces.append(
                {
                    "type": "scatter3d",
                    "mode": "markers",
                    "name": html.escape(name, quote=False),
                    "x": x,
                    "y": y,
                    "z": z,
                    "marker": {
                        "size": 4,
                        "opacity": 0.85,
                        "symbol": _SYMBOLS_3D[code % len(_SYMBOLS_3D)],
                        "color": _CLASS_COLOURS[code % len(_CLASS_COLOURS)],
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
    return _layout() | {
        "scene": axes | {"aspectmode": "cube", "camera": {"eye": {"x": 1.35, "y": 1.35, "z": 0.85}}},
        "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
        "legend": {"itemsizing": "constant", "y": 0.95},
    }


def non_dominated(runs: Sequence[Run], key: str) -> list[Run]:
    """Runs that no other run beats in utility and in privacy, by rising utility."""
    kept: list[Run] = []
    for run in sorted(runs, key=lambda r: (_utility(r), _gain(r, key)), reverse=True):
        if not kept or _gain(run, key) > _gain(kept[-1], key):
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
            "y": [max(run.worst[key].value, floor) for run in best],
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
        "name": html.escape(runs[0].mechanism, quote=False),
        "x": [None if use is None else use.value for use in uses],
        "y": ys,
        "customdata": [None if run is None else ids[run.name] for run in drawn],
        "text": ["" if run is None else _hover(run, key) for run in drawn],
        "hoverinfo": "text",
        "error_x": _error([(use.value, use.ci) if use else None for use in uses], look, None),
        "error_y": _error([(r.worst[key].value, r.worst[key].ci) if r else None for r in drawn], look, floor),
        "line": {"color": look.colour, "width": 2, "dash": look.dash},
        "marker": {
            "symbol": look.symbol,
            "size": 11,
            "color": look.colour,
            "line": {"color": look.colour, "width": 3} if "thin" in look.symbol else {"color": "#fff", "width": 1.5},
        },
    }


def _error(items: Sequence[tuple[float, tuple[float, float]] | None], look: Style, floor: float | None) -> Figure:
    """Error bars from value and interval; on a logarithmic axis they end at its floor."""

    def ends(item: tuple[float, tuple[float, float]] | None) -> tuple[float, float]:
        if item is None:
            return 0.0, 0.0
        value, (low, high) = item
        if floor is not None:
            value, low = max(value, floor), max(low, floor)
        return max(high - value, 0.0), max(value - low, 0.0)

    up, down = zip(*(ends(item) for item in items), strict=True)
    return {
        "type": "data",
        "symmetric": False,
        "array": list(up),
        "arrayminus": list(down),
        "color": look.colour,
        "thickness": 1.1,
        "width": 3,
    }


def _hover(run: Run, key: str) -> str:
    use, score = run.use, run.worst[key]
    lines = [f"<b>{html.escape(run.title, quote=False)}</b>"]
    if use is not None:
        lines.append(f"{html.escape(metric_name(use.metric), quote=False)} {measured(use)}")
    attack = html.escape(score.attack, quote=False)
    lines.append(f"{html.escape(metric_name(score.metric), quote=False)} {measured(score)} by {attack}")
    return "<br>".join(lines)


def _references(scores: Sequence[Score], *, logarithmic: bool) -> tuple[list[Figure], list[Figure]]:
    """Lines for the baseline and the control, or bands where the runs' own differ by more than a twentieth."""
    shapes: list[Figure] = []
    notes: list[Figure] = []
    metric = scores[0].metric
    for name, dash, values in (
        ("sees nothing (baseline)", "6px,4px", [s.baseline for s in scores if s.baseline is not None]),
        ("no defence (control)", "2px,3px", [s.control for s in scores if s.control is not None]),
    ):
        usable = [value for value in values if value > 0 or not logarithmic]
        if not usable:
            continue
        low, high = min(usable), max(usable)
        band = high - low > 0.05 * max(abs(high), abs(low), 1e-12)
        span = f"{reference(low, metric)} to {reference(high, metric)}" if band else reference(low, metric)
        ends = (low, high) if band else (low, low)
        shapes.append(
            {
                "type": "rect" if band else "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": ends[0],
                "y1": ends[1],
                "line": {"color": "#4b5563", "width": 1.3, "dash": dash},
                "fillcolor": "rgba(75,85,99,0.06)",
                "layer": "below",
            }
        )
        notes.append(
            {
                "xref": "paper",
                "x": 0.005,
                "xanchor": "left",
                "y": math.log10(ends[1]) if logarithmic else ends[1],
                "yanchor": "bottom",
                "text": f"{name}: {span}",
                "showarrow": False,
                "font": {"size": 12, "color": "#3b4452"},
            }
        )
    return shapes, notes


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
    metric = f"{metric_name(score.metric)} of the best attack"
    return f"{html.escape(threat_name(key), quote=False)}: {html.escape(metric, quote=False)}"


def _axis() -> Figure:
    return {
        "gridcolor": "#eceff3",
        "linecolor": "#8a94a3",
        "showline": True,
        "ticks": "outside",
        "ticklen": 5,
        "tickcolor": "#8a94a3",
        "zeroline": False,
        "automargin": True,
    }


def _layout() -> Figure:
    return {
        "font": {"family": FONT, "size": 13, "color": INK},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hoverlabel": {
            "bgcolor": "#fff",
            "bordercolor": "#8a94a3",
            "font": {"color": INK, "size": 13},
            "align": "left",
        },
    }


def _utility(run: Run) -> float:
    return run.use.value if run.use else -math.inf


def _gain(run: Run, key: str) -> float:
    score = run.worst[key]
    return score.value if score.better_for_owner == "higher" else -score.value
