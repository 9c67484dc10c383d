"""Charts about keys: how far a guess of the key is off, which row is found, and what a wrong key is worth."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato.report.audited_runs import Reading, Run, WrongKey
from sfumato.report.plot_style import (
    INK,
    Board,
    Figure,
    Panel,
    Reference,
    Sheet,
    Style,
    axis,
    error_bars,
    layout,
    marker,
    reference_lines,
    safe,
    styles,
)
from sfumato.report.rotated_messages import primary
from sfumato.report.wording import measured, metric_name, number

_TURNS = {0.0: "0", math.pi / 4: "π/4", math.pi / 2: "π/2", 3 * math.pi / 4: "3π/4", math.pi: "π"}
_MOST_NAMES = 8
_GUESSING = "guessing"


def key_errors(runs: Sequence[Run]) -> Board | None:
    """The error of the angle against that of a uniform guess, and the rate of each attack on rows against 1/d."""
    attacks = dict.fromkeys(s.attack for run in runs for s in run.attacks if s.threat in ("key", "row") and s.primary)
    if not attacks:
        return None
    looks = styles(list(attacks))
    panels = [panel for panel in (_angles(runs, looks), _rows(runs, looks)) if panel is not None]
    key = [(look.symbol, look.colour, name) for name, look in looks.items()]
    return Board(
        "What is found out about the key",
        "The key turns the record into a secret direction. A uniform guess of it errs by π/2 on average; whoever finds "
        "the directions of all d records, but not which one is meant, by (1 − 1/d)·π/2. Right row: given the d records "
        "behind a message, how often is that one named for which it was sent? Guessing gets 1/d. Bars: 95 % intervals.",
        "curves",
        "",
        (Sheet("", (*key, ("dashed", INK, _GUESSING)), tuple(panels)),),
    )


def key_worth(runs: Sequence[Run]) -> Board | None:
    """Accuracy against the angle between the keys, and with a key drawn uniformly; None where it was not measured."""
    found = [(run, run.wrong_key) for run in runs if run.wrong_key is not None]
    if not found:
        return None
    looks = styles([run.title for run, _ in found])
    key = [(look.symbol, look.colour, name) for name, look in looks.items()]
    chance = Reference("majority guess", "6px,4px", tuple(wrong.chance for _, wrong in found))
    return Board(
        "What a key is worth",
        "How often the answer is right if it is turned back with a key that is off by an angle: 0 is the right key. "
        "Whoever has no key at all can draw one uniformly. Bars are 95 % intervals.",
        "curves",
        "",
        (
            Sheet(
                "",
                (*key, ("dashed", INK, f"majority guess {chance.span('accuracy')}")),
                (_off_by(found, looks, chance), _drawn(found, looks, chance)),
            ),
        ),
    )


def _angles(runs: Sequence[Run], looks: dict[str, Style]) -> Panel | None:
    found = [(i, run, score) for i, run in enumerate(runs) if (score := primary(run, "key")) is not None]
    if not found:
        return None
    attack = found[0][2].attack
    shapes, _ = reference_lines([Reference("uniform", "6px,4px", (math.pi / 2,))], "angle", [-0.6, len(runs) - 0.4])
    trace = _marks(
        [
            (float(i), score.value, score.ci, f"<b>{safe(run.title)}</b><br>{measured(score)}")
            for i, run, score in found
        ],
        looks[attack],
        attack,
    )
    y = {"title": {"text": "error of the angle", "standoff": 8}, "range": [0, math.pi + 0.1], **_turns()}
    return Panel(
        "Error of the angle",
        "higher is better for the owner (a uniform guess π/2 ≈ 1.571 rad)",
        [trace],
        _layout(_names(runs), y, shapes),
    )


def _rows(runs: Sequence[Run], looks: dict[str, Style]) -> Panel | None:
    attacks = [name for name in looks if any(primary(run, "row", name) is not None for run in runs)]
    if not attacks:
        return None
    traces, ends = [], [0.0]
    for place, attack in enumerate(attacks):
        marks = []
        for i, run in enumerate(runs):
            score = primary(run, "row", attack)
            if score is not None:
                told = f"<b>{safe(run.title)}</b><br>{safe(attack)}: {measured(score)}"
                marks.append((i + 0.18 * (place - (len(attacks) - 1) / 2), score.value, score.ci, told))
                ends.append(score.ci[1])
        traces.append(_marks(marks, looks[attack], attack))
    shapes = []
    for i, run in enumerate(runs):
        if run.d > 1:
            line = Reference(_GUESSING, "6px,4px", (1 / run.d,))
            shapes += reference_lines([line], "rate", [i - 0.42, i + 0.42])[0]
            ends.append(1 / run.d)
    y = {
        "title": {"text": metric_name("rate", "row"), "standoff": 8},
        "range": [0, min(1.03, 1.15 * max(ends))],
        "tickformat": ".0%",
    }
    among = sorted({run.d for run in runs if run.d > 1})
    guess = ", ".join(f"1/{d} = {number(1 / d, 'rate')}" for d in among)
    note = f"lower is better for the owner ({_GUESSING} {guess})" if guess else "lower is better for the owner"
    return Panel("Which row is the record", note, traces, _layout(_names(runs), y, shapes))


def _off_by(found: Sequence[tuple[Run, WrongKey]], looks: dict[str, Style], chance: Reference) -> Panel:
    traces = []
    for run, wrong in found:
        look = looks[run.title]
        marks = [
            (angle, reading.accuracy, reading.ci, _hover(run, f"off by {angle:.2f} rad", reading))
            for angle, reading in zip(wrong.angles, wrong.curve, strict=True)
        ]
        line = {"color": look.colour, "width": 2, "dash": look.dash}
        traces.append(_marks(marks, look, run.title) | {"mode": "lines+markers", "line": line})
    shapes, _ = reference_lines([chance], "accuracy", [-0.1, math.pi + 0.1])
    x = {"title": {"text": "angle between the keys", "standoff": 6}, "range": [-0.1, math.pi + 0.1], **_turns()}
    return Panel(
        "Accuracy against the angle between the keys",
        "0 is the right key, π its opposite",
        traces,
        _layout(x, _accuracies(found, chance), shapes),
    )


def _drawn(found: Sequence[tuple[Run, WrongKey]], looks: dict[str, Style], chance: Reference) -> Panel:
    """Open marks for the right key, filled ones for a key drawn uniformly, over d."""
    values = sorted({wrong.d for _, wrong in found})
    traces = []
    for run, wrong in found:
        beside = [other for other, its in found if its.d == wrong.d]
        x = wrong.d + 0.16 * (beside.index(run) - (len(beside) - 1) / 2)
        look = looks[run.title]
        for told, reading in (("right key", wrong.curve[0]), ("key drawn uniformly", wrong.uniform)):
            trace = _marks([(x, reading.accuracy, reading.ci, _hover(run, told, reading))], look, run.title)
            if reading is not wrong.uniform:
                symbol = f"{look.symbol}-open"
                trace["marker"] = {"symbol": symbol, "size": 9, "color": look.colour, "line": {"width": 2}}
            traces.append(trace)
    ends = [values[0] - 0.7, values[-1] + 0.7]
    shapes, _ = reference_lines([chance], "accuracy", ends)
    x_axis = {"title": {"text": "d", "standoff": 6}, "range": ends, "tickvals": values}
    return Panel(
        "Accuracy with a key drawn uniformly, against d",
        "filled: drawn uniformly; open: the right key",
        traces,
        _layout(x_axis, _accuracies(found, chance), shapes),
    )


def _marks(marks: Sequence[tuple[float, float, tuple[float, float], str]], look: Style, name: str) -> Figure:
    """Marks with error bars: (x, y, interval, what is told of it)."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": safe(name),
        "x": [x for x, _, _, _ in marks],
        "y": [y for _, y, _, _ in marks],
        "error_y": error_bars([(y, ci) for _, y, ci, _ in marks], look),
        "text": [text for _, _, _, text in marks],
        "hoverinfo": "text",
        "marker": marker(look, 9),
    }


def _hover(run: Run, told: str, reading: Reading) -> str:
    low, high = (number(end, "accuracy", unit=False) for end in reading.ci)
    return f"<b>{safe(run.title)}</b><br>{told}: {number(reading.accuracy, 'accuracy')} [{low}, {high}]"


def _names(runs: Sequence[Run]) -> Figure:
    """The x axis of charts with one place a run; many runs are told by pointing at them."""
    variants = {str(run.params.get("variant", "")) for run in runs}
    names = [f"d = {run.d}" if run.d > 1 else run.mechanism for run in runs]
    if len(variants) > 1:
        names = [f"{name}<br>{safe(str(run.params.get('variant', '')))}" for name, run in zip(names, runs, strict=True)]
    elif len(set(names)) < len(names):
        names = [safe(run.setting.replace(", ", "<br>")) or name for name, run in zip(names, runs, strict=True)]
    few = len(runs) <= _MOST_NAMES
    return {"range": [-0.6, len(runs) - 0.4], "tickvals": list(range(len(runs))), "ticktext": names if few else []}


def _accuracies(found: Sequence[tuple[Run, WrongKey]], chance: Reference) -> Figure:
    readings = [reading for _, wrong in found for reading in (*wrong.curve, wrong.uniform)]
    high = max(*chance.values, *(reading.ci[1] for reading in readings))
    return {"title": {"text": "accuracy", "standoff": 6}, "range": [0, max(1.06 * high, 0.05)], "tickformat": ".0%"}


def _turns() -> Figure:
    return {"tickvals": list(_TURNS), "ticktext": list(_TURNS.values())}


def _layout(x: Figure, y: Figure, shapes: list[Figure]) -> Figure:
    return layout() | {
        "xaxis": axis() | x,
        "yaxis": axis() | y,
        "shapes": shapes,
        "hovermode": "closest",
        "showlegend": False,
        "margin": {"l": 56, "r": 10, "t": 6, "b": 46},
    }
