"""How the best attack confuses the classes of a private label, before and after: confusion matrices."""

from __future__ import annotations

from sfumato.report.audited_runs import Confusion, Group, Run, by_method, most_private
from sfumato.report.plots import Board, Figure, panel
from sfumato.report.wording import named

_MOST_FIGURES = 12  # classes: more of them leave no room for a figure in each cell
_FEW = 4
_MOST_NAMES = 30
_LONGEST = 14


def confusions(group: Group) -> Board | None:
    """For each private label: the undefended run, then the most private run of each method."""
    sheets: dict[str, Figure] = {}
    for label in dict.fromkeys(label for run in group.runs for label in run.confusion):
        shown = [run for run in group.controls if label in run.confusion][:1]
        for own in by_method(run for run in group.runs if run.defended and label in run.confusion).values():
            strongest = most_private(own, f"attribute:{label}")
            shown += [strongest] if strongest is not None else []
        if shown:
            sheets[label] = {"key": [], "panels": [_panel(run, label) for run in shown]}
    if not sheets:
        return None
    several = len(group.runs) > len(group.methods)
    of_each = " For each method, the setting that leaks least is shown." if several else ""
    return Board(
        f"What is taken for what{f': {next(iter(sheets))}' if len(sheets) == 1 else ''}",
        "Each row is a true class, each column what the best attack took it for, in percent of the row. If the attack "
        f"learns nothing, all rows are alike; a diagonal is a leak.{of_each}",
        "matrices",
        "Private label",
        sheets,
    )


def _panel(run: Run, label: str) -> Figure:
    found = run.confusion[label]
    scores = (s for s in run.attacks if (s.attack, s.target, s.metric) == (found.attack, label, "accuracy"))
    score = next(scores, run.worst.get(f"attribute:{label}"))
    got = f": {named(score)}" if score is not None else ""
    return panel(run.title, f"{found.attack}{got}", [_heat(found)], _layout(found))


def _heat(found: Confusion) -> Figure:
    shares: list[list[float | None]] = []
    hover = []
    for truth, row in zip(found.classes, found.matrix, strict=True):
        total = sum(row)
        shares.append([entry / total if total else None for entry in row])
        guesses = zip(found.classes, row, strict=True)
        hover.append([f"{truth} taken for {guess}: {entry:,} of {total:,}" for guess, entry in guesses])
    return {
        "type": "heatmap",
        "z": shares,
        "hovertext": hover,
        "text": [[_percent(share, len(found.classes)) for share in row] for row in shares],
        "textfont": {"size": 15 if len(found.classes) <= _FEW else 11},
    }


def _percent(share: float | None, classes: int) -> str:
    """The text in a cell: with the unit only where there is room, and empty where it would be 0 among many."""
    if share is None or classes > _MOST_FIGURES:
        return ""
    if classes <= _FEW:
        return f"{100 * share:.0f} %"
    return f"{100 * share:.0f}" if share >= 0.005 else ""


def _layout(found: Confusion) -> Figure:
    names = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in found.classes]
    shared = {
        "tickvals": list(range(len(names))),
        "ticktext": names,
        "showticklabels": len(names) <= _MOST_NAMES,
    }
    return {
        "xaxis": shared | {"title": {"text": "guess"}},
        "yaxis": shared | {"title": {"text": "truth"}, "autorange": "reversed"},
    }
