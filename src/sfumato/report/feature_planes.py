"""Released features in a plane, before and after, marked by one label at a time."""

from __future__ import annotations

from sfumato.report.audited_runs import Features, Group, Run, most_private
from sfumato.report.plot_style import CLASS_COLOURS, SYMBOLS, Board, Figure, Panel, Sheet, layout, safe
from sfumato.report.series import spread
from sfumato.report.wording import measured, metric_name

_PANELS = 3  # beside the raw latent
_MOST_NAMES = 20
_VIEWS = {"umap": "in a plane by UMAP", "pca": "in their first two principal components"}


def planes(group: Group) -> Board | None:
    """What was not defended beside a few runs; None where there is neither a raw latent to compare nor a UMAP."""
    shown = _shown(group)
    before = len(shown) > 1 and shown[0][0].traits.unprotected == "latent"
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
        f"Up to {max(len(features.points) for _, features in shown)} released records {views}. Every panel has axes of "
        "its own: where a group lies says nothing, whether it stands apart does. What this view does not separate may "
        f"still be separable.{carries}",
        "planes",
        "Marked by",
        tuple(_sheet(label, shown, private=label in secret) for label in labels),
    )


def _shown(group: Group) -> list[tuple[Run, Features]]:
    """The raw latent (or record), and of each method its most private run; two runs of it where it is the only one."""
    kept = [run for run in group.runs if run.features is not None]
    shown = [run for run in group.controls if run.features is not None][:1]
    defended = dict.fromkeys(run.mechanism for run in kept if run.defended)
    most = min(2, max(1, _PANELS // max(1, len(defended))))
    for method in defended:
        own = [run for run in kept if run.mechanism == method]
        strongest = most_private(own, group.threats[0]) if group.threats else None
        shown += spread(own, most) if most > 1 or strongest is None else [strongest]
    return [(run, run.features) for run in shown if run.features is not None]


def _sheet(label: str, shown: list[tuple[Run, Features]], *, private: bool) -> Sheet:
    classes = shown[0][1].colours[label].classes
    key = tuple((_symbol(i), _colour(i), name) for i, name in enumerate(classes[:_MOST_NAMES]))
    panels = [
        Panel(run.title, _note(run, label, private=private), _traces(features, label), _layout())
        for run, features in shown
    ]
    return Sheet(f"{label} (private)" if private else label, key, tuple(panels))


def _note(run: Run, label: str, *, private: bool) -> str:
    """What is read from the release, not only from this view of it."""
    score = run.leak(label) if private else run.reads(label)
    facts = ["raw latent"] if run.traits.unprotected == "latent" else []
    if score is not None:
        facts.append(f"{'best attack' if private else 'others'}: {metric_name(score.metric)} {measured(score)}")
    return ", ".join(facts)


def _traces(features: Features, label: str) -> list[Figure]:
    colouring = features.colours[label]
    traces = []
    for code in sorted(set(colouring.codes)):
        points = [p for p, own in zip(features.points, colouring.codes, strict=True) if own == code]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [x for x, _, _ in points],
                "y": [y for _, y, _ in points],
                "text": safe(colouring.classes[code]),
                "hoverinfo": "text",
                "marker": {"size": 5, "opacity": 0.75, "symbol": _symbol(code), "color": _colour(code)},
            }
        )
    return traces


def _symbol(code: int) -> str:
    return SYMBOLS[code % len(SYMBOLS)]


def _colour(code: int) -> str:
    return CLASS_COLOURS[code % len(CLASS_COLOURS)]


def _layout() -> Figure:
    bare = {"showticklabels": False, "showgrid": False, "zeroline": False, "linecolor": "#d8dde5", "mirror": True}
    axes = {f"{name}axis": bare | {"showline": True, "ticks": ""} for name in "xy"}
    return layout() | axes | {"margin": {"l": 4, "r": 4, "t": 4, "b": 4}, "showlegend": False, "hovermode": "closest"}
