"""Released features as points: in a plane before and after, marked by one label at a time, or in space."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.report.audited_runs import Features, Group, Run, by_method, most_private, spread
from sfumato.report.plots import CLASS_COLOURS, SYMBOLS, Board, Figure, entry, panel
from sfumato.report.wording import named

_PANELS = 3  # beside the raw latent
_MOST_NAMES = 20
_VIEWS = {"umap": "in a plane by UMAP", "pca": "in their first two principal components"}
_PLANE = {"type": "scatter", "marker": {"size": 5, "opacity": 0.75}}
_SPACE = {"type": "scatter3d", "marker": {"size": 4, "opacity": 0.85}}
_BARE = {"showticklabels": False, "showgrid": False}
_PLANE_LAYOUT = {"xaxis": _BARE, "yaxis": _BARE}


def planes(group: Group) -> Board | None:
    """The undefended run beside a few others; None where there is neither a raw latent to compare with nor a UMAP."""
    shown = _shown(group)
    before = len(shown) > 1 and shown[0][0].raw_latent
    if not before and not any(features.method == "umap" for _, features in shown):
        return None
    labels = [label for label in shown[0][1].colours if all(label in features.colours for _, features in shown)]
    if not labels:
        return None
    secret = [label for label in labels if any(label in run.private for run, _ in shown)]
    views = " or ".join(dict.fromkeys(_VIEWS.get(features.method, features.method) for _, features in shown))
    carries = " The points carry these victims’ true labels, private ones too." if secret else ""
    return Board(
        "Released features" if len(shown) == 1 else "Released features, before and after",
        f"Up to {max(len(features.points) for _, features in shown)} released records {views}. Every panel has its "
        "own axes: where a group lies means nothing, whether it stands apart does. What this view does not separate "
        f"may still be separable.{carries}",
        "planes",
        "Marked by",
        {
            f"{label} (private)" if label in secret else label: _sheet(label, shown, private=label in secret)
            for label in labels
        },
    )


def space(run: Run) -> Figure | None:
    """Released features in three principal components, marked by the main label; None where none were kept."""
    features = run.features
    if features is None or features.method != "pca":
        return None
    traces = _traces(features, features.label, _SPACE, "xyz", SYMBOLS)
    return {"data": traces, "label": features.label}


def _shown(group: Group) -> list[tuple[Run, Features]]:
    """The raw latent (or record), and each method's most private run; two runs of the method if it is the only one."""
    shown = [run for run in group.controls if run.features is not None][:1]
    defended = by_method(run for run in group.runs if run.features is not None and run.defended)
    most = min(2, max(1, _PANELS // max(1, len(defended))))
    for own in defended.values():
        strongest = most_private(own, group.threats[0]) if group.threats else None
        shown += spread(own, most) if most > 1 or strongest is None else [strongest]
    return [(run, run.features) for run in shown if run.features is not None]


def _sheet(label: str, shown: list[tuple[Run, Features]], *, private: bool) -> Figure:
    classes = shown[0][1].colours[label].classes[:_MOST_NAMES]
    key = [entry(SYMBOLS[i % len(SYMBOLS)], _colour(i), name) for i, name in enumerate(classes)]
    panels = []
    for run, features in shown:
        traces = _traces(features, label, _PLANE, "xy", SYMBOLS)
        panels.append(panel(run.title, _note(run, label, private=private), traces, _PLANE_LAYOUT))
    return {"key": key, "panels": panels}


def _note(run: Run, label: str, *, private: bool) -> str:
    """What is read from the release as a whole, not from this view of it."""
    score = run.leak(label) if private else run.reads(label)
    facts = ["raw latent"] if run.raw_latent else []
    facts += [f"{'best attack' if private else 'others'}: {named(score)}"] if score is not None else []
    return ", ".join(facts)


def _traces(features: Features, label: str, like: Figure, axes: str, symbols: Sequence[str]) -> list[Figure]:
    """One trace per class that has points; classes differ in symbol and in colour."""
    colouring = features.colours[label]
    traces = []
    for code in sorted(set(colouring.codes)):
        points = [p for p, own in zip(features.points, colouring.codes, strict=True) if own == code]
        columns = {axis: [point[i] for point in points] for i, axis in enumerate(axes)}
        marker = like["marker"] | {"symbol": symbols[code % len(symbols)], "color": _colour(code)}
        name = colouring.classes[code]
        traces.append(like | columns | {"mode": "markers", "name": name, "text": name, "marker": marker})
    return traces


def _colour(code: int) -> str:
    return CLASS_COLOURS[code % len(CLASS_COLOURS)]
