"""An audit's figures for a notebook: rows for a DataFrame, an HTML table and a plot of leakage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sfumato.core.extras import require
from sfumato.core.notebook import rows_table
from sfumato.core.score import Score

HEADS = ("threat", "worst attack", "figure", "95 % interval", "guesser", "undefended", "leakage")


def score_rows(groups: Mapping[str, Iterable[Score]], worst: Iterable[Score]) -> list[dict[str, Any]]:
    """One row a score; ``worst`` marks those that count, ``kind`` says what was measured."""
    counts = {id(score) for score in worst}
    return [
        {
            "kind": kind,
            "attack": score.attack,
            "attack_version": score.attack_version,
            "threat": score.threat,
            "label": score.target,
            "metric": score.metric,
            "value": score.value,
            "low": score.ci[0],
            "high": score.ci[1],
            "baseline": score.baseline,
            "control": score.control,
            "leakage": score.leakage,
            "leakage_low": None if score.leakage_ci is None else score.leakage_ci[0],
            "leakage_high": None if score.leakage_ci is None else score.leakage_ci[1],
            "better_for_owner": score.better_for_owner,
            "n": score.n,
            "worst": id(score) in counts,
        }
        for kind, scores in groups.items()
        for score in scores
    ]


def frame(rows: list[dict[str, Any]]) -> Any:
    """The rows as a pandas DataFrame."""
    require("viz", "to_frame()", "pandas")
    import pandas as pd

    return pd.DataFrame(rows)


def worst_table(title: str, worst: Mapping[str, Score], utility: Iterable[Score]) -> str:
    """HTML: what is served, and the worst attack of each threat."""
    served = [
        ("utility", score.attack, _figure(score), _ends(score), _number(score.baseline), "", "") for score in utility
    ]
    leaked = [
        (threat, s.attack, _figure(s), _ends(s), _number(s.baseline), _number(s.control), _share(s))
        for threat, s in worst.items()
    ]
    return rows_table(title, HEADS, [*served, *leaked])


def leakage_plot(title: str, worst: Mapping[str, Score]) -> Any:
    """A bar for the leakage of each threat's worst attack, with its interval; matplotlib's axes.

    Raises:
        UsageError: matplotlib is missing, or no threat of the audit can be put as leakage.
    """
    from sfumato.core.errors import UsageError

    graded = {threat: score for threat, score in worst.items() if score.leakage is not None}
    if not graded:
        raise UsageError(
            "no attack of this audit beat its baseline where nothing is defended: there is no leakage to plot."
        )
    require("viz", "plot()", "matplotlib")
    from matplotlib.figure import Figure

    axes = Figure(figsize=(7, 0.8 + 0.45 * len(graded)), layout="constrained").subplots()
    for place, score in enumerate(graded.values()):
        share, (low, high) = score.leakage or 0.0, score.leakage_ci or (score.leakage or 0.0, score.leakage or 0.0)
        axes.barh(place, 100 * share, color="#b3541e", height=0.6)
        axes.plot([100 * low, 100 * high], [place, place], color="black", linewidth=1.5)
        axes.text(101, place, f"{share:.0%} by {score.attack}", va="center", fontsize=8)
    axes.set(xlim=(0, 100), xlabel="leakage, % of what an undefended release tells", title=title)
    axes.set_yticks(range(len(graded)), list(graded))
    axes.invert_yaxis()
    return axes


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _figure(score: Score) -> str:
    return f"{score.metric} {score.value:.3g}"


def _ends(score: Score) -> str:
    return f"{score.ci[0]:.3g} … {score.ci[1]:.3g}"


def _share(score: Score) -> str:
    return "" if score.leakage is None else f"{score.leakage:.0%}"
