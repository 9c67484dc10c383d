"""What the best attack takes for what: confusion matrices of a private label, before and after."""

from __future__ import annotations

from sfumato.report.audited_runs import Confusion, Group, Run, most_private
from sfumato.report.plot_style import Board, Figure, Panel, Sheet, layout, safe
from sfumato.report.wording import measured, metric_name

_MOST_FIGURES = 12  # classes: more of them leave no room for a figure in each cell
_FEW = 4
_MOST_NAMES = 30
_LONGEST = 14
_SHADES = ((0.0, "#ffffff"), (0.5, "#7fa8cf"), (1.0, "#0b4f8a"))


def confusions(group: Group) -> Board | None:
    """For each private label: the undefended run, then the most private run of each method."""
    sheets = []
    for label in dict.fromkeys(label for run in group.runs for label in run.confusion):
        kept = [run for run in group.runs if label in run.confusion]
        before = next((run for run in group.controls if label in run.confusion), None)
        after = [
            run
            for method in dict.fromkeys(run.mechanism for run in kept if run.defended)
            if (run := most_private([r for r in kept if r.mechanism == method], f"attribute:{label}")) is not None
        ]
        panels = [_panel(run, label) for run in ([] if before is None else [before]) + after]
        if panels:
            sheets.append(Sheet(label, (), tuple(panels)))
    if not sheets:
        return None
    several = any(len(group.of(method)) > 1 for method in group.methods)
    of_each = " Of each method the setting that leaks least is shown." if several else ""
    return Board(
        f"What is taken for what{f': {sheets[0].name}' if len(sheets) == 1 else ''}",
        "Each row is a true class, each column what the best attack took it for, in percent of the row. Where nothing "
        f"can be told, the rows are alike; a diagonal is a leak.{of_each}",
        "matrices",
        "Private label",
        tuple(sheets),
    )


def _panel(run: Run, label: str) -> Panel:
    found = run.confusion[label]
    scores = (s for s in run.attacks if (s.attack, s.target, s.metric) == (found.attack, label, "accuracy"))
    score = next(scores, run.worst.get(f"attribute:{label}"))
    got = f": {metric_name(score.metric)} {measured(score)}" if score is not None else ""
    return Panel(run.title, f"{found.attack}{got}", [_heat(found)], _layout(found))


def _heat(found: Confusion) -> Figure:
    shares: list[list[float | None]] = []
    hover = []
    for truth, row in zip(found.classes, found.matrix, strict=True):
        total = sum(row)
        shares.append([entry / total if total else None for entry in row])
        hover.append(
            [
                f"{safe(truth)} taken for {safe(guess)}: {entry:,} of {total:,}"
                for guess, entry in zip(found.classes, row, strict=True)
            ]
        )
    return {
        "type": "heatmap",
        "z": shares,
        "zmin": 0,
        "zmax": 1,
        "colorscale": [list(shade) for shade in _SHADES],
        "showscale": False,
        "hovertext": hover,
        "hoverinfo": "text",
        "text": [[_percent(share, found) for share in row] for row in shares],
        "texttemplate": "%{text}",
        "textfont": {"size": 15 if len(found.classes) <= _FEW else 11},
        "xgap": 1,
        "ygap": 1,
    }


def _percent(share: float | None, found: Confusion) -> str:
    """What stands in a cell: the unit only where there is room, and nothing where it would be 0 among many."""
    classes = len(found.classes)
    if share is None or classes > _MOST_FIGURES:
        return ""
    if classes <= _FEW:
        return f"{100 * share:.0f} %"
    return f"{100 * share:.0f}" if share >= 0.005 else ""


def _layout(found: Confusion) -> Figure:
    places = list(range(len(found.classes)))
    names = [safe(name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…") for name in found.classes]
    shared = {
        "tickvals": places,
        "ticktext": names,
        "showticklabels": len(names) <= _MOST_NAMES,
        "showgrid": False,
        "zeroline": False,
        "automargin": True,
        "constrain": "domain",
        "fixedrange": True,
    }
    return layout() | {
        "xaxis": shared | {"title": {"text": "guess", "standoff": 6}},
        "yaxis": shared | {"title": {"text": "truth", "standoff": 6}, "autorange": "reversed", "scaleanchor": "x"},
        "margin": {"l": 50, "r": 6, "t": 4, "b": 44},
    }
