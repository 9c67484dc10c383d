"""Figures 4 to 8 of the `ars` paper as pictures, from stored scores and galleries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.auditing.alone import ALONE_RAW
from sfumato.auditing.utility import CLEAN
from sfumato.core.intervals import Interval
from sfumato.studies.ars_alone import accuracy_by
from sfumato.studies.ars_base import (
    KNOWN,
    PAPERS_ATTACKER,
    is_supervised,
    is_variant,
    published,
    worst,
)
from sfumato.studies.drawing import Curve, bars, gallery_of, picture_rows, plots
from sfumato.studies.rows import Results, accuracy, attack_score

_ALONE, _MEAN = "a party alone, raw records", "mean record"
_X = "ε, in deviations of a latent"
_TALL = 64
"""Pixels that a picture is drawn high, about."""

Score = Mapping[str, Any]
Values = Mapping[str, tuple[float, Interval]]
"""Name → value and interval."""


def draw_figure4(_data: str, results: Results, path: Path) -> None:
    """Accuracy and error over ε: published by both attackers, hardened, and simple noise on both encoders."""
    chains = {
        "published": published(results),
        "hardened": [r for r in results if is_variant(r, "hardened")],
        "uniform noise": [r for r in results if is_variant(r, "uniform")],
        "Gaussian noise": [r for r in results if is_variant(r, "gaussian")],
        "supervised, Gaussian noise": [r for r in results if is_supervised(r) and r["params"]["way"] == "gaussian"],
    }
    useful: dict[str, Curve | None] = {name: _curve(chain, accuracy) for name, chain in chains.items()}
    useful["published, on clean latents"] = _curve(chains["published"], lambda r: accuracy_by(r, CLEAN))
    useful[_ALONE] = _level(chains["published"], lambda r: accuracy_by(r, ALONE_RAW), "value")
    errors = {f"{name}, worst attacker": _curve(chain, worst) for name, chain in chains.items()}
    errors["published, the paper's attacker"] = _curve(
        chains["published"], lambda r: attack_score(r, PAPERS_ATTACKER, "mse")
    )
    errors[_MEAN] = _level(chains["published"], worst, "baseline")
    panels = [
        (title, {name: curve for name, curve in curves.items() if curve is not None})
        for title, curves in (("accuracy on the pool", useful), ("error of who rebuilds records (mse)", errors))
    ]
    plots(path, panels, x=_X, y="", dashed=(_ALONE, _MEAN))


def _curve(chain: Results, score_of: Callable[[Mapping[str, Any]], Score | None]) -> Curve | None:
    """A score over ε, where the points have it."""
    found = [(float(r["params"]["epsilon"]), score) for r in chain if (score := score_of(r)) is not None]
    if not found:
        return None
    found.sort(key=lambda one: one[0])
    return [x for x, _ in found], [float(s["value"]) for _, s in found], [_ends(s) for _, s in found]


def _level(chain: Results, score_of: Callable[[Mapping[str, Any]], Score | None], field: str) -> Curve | None:
    """A figure that does not depend on ε, from the first point to the last."""
    score = score_of(chain[0])
    if score is None or score.get(field) is None:
        return None
    ends = [float(r["params"]["epsilon"]) for r in (chain[0], chain[-1])]
    return ends, [float(score[field])] * 2, None


def _ends(score: Score) -> Interval:
    return float(score["ci"][0]), float(score["ci"][1])


def draw_rebuilt(_data: str, results: Results, path: Path, *, epsilons: Sequence[float]) -> None:
    """Records, and what the paper's attacker and the worst one make of them at these ε, and of faces without a mask.

    Without a mask the paper's attacker, who makes such noise itself, is the one who knows that all bits are 1.
    """
    bare = [(r, "no mask, ", KNOWN) for r in results if r["params"].get("masked") is False]
    shown: dict[str, Any] = {}
    for result, mask, theirs in (*((r, "", PAPERS_ATTACKER) for r in published(results)), *bare):
        epsilon = float(result["params"]["epsilon"])
        if epsilon not in epsilons:
            continue
        kept = gallery_of(result)
        shown.setdefault("records", kept["originals"])
        ranked = sorted((s for s in result["attacks"] if s["metric"] == "mse"), key=lambda s: float(s["value"]))
        best = next(str(s["attack"]) for s in ranked if f"recon/{s['attack']}" in kept)  # a gallery has no others
        for who, attack in (("paper's attacker", theirs), ("worst attacker", best)):
            if f"recon/{attack}" in kept:
                shown[f"noise {epsilon:g}, {mask}{who}"] = kept[f"recon/{attack}"]
    high = shown["records"].shape[-2]
    picture_rows(path, shown, scale=max(1, round(_TALL / high)))


def draw_mixes(path: Path, results: Results, values_of: Callable[[Mapping[str, Any]], Values], *, y: str) -> None:
    """A group of bars for each mix of λ where one ε was run, else a panel for each with curves over ε."""
    mixes: dict[str, list[Mapping[str, Any]]] = {}
    for result in results:
        lam = result["params"].get("lam")
        mixes.setdefault(f"λ = {lam}" if lam else "hardened", []).append(result)
    if all(len(points) == 1 for points in mixes.values()):
        bars(path, {mix: dict(values_of(points[0])) for mix, points in mixes.items()}, y=y)
        return
    panels = []
    for mix, points in mixes.items():
        points.sort(key=lambda r: float(r["params"]["epsilon"]))
        xs, each = [float(r["params"]["epsilon"]) for r in points], [values_of(r) for r in points]
        curves: dict[str, Curve] = {n: (xs, [v[n][0] for v in each], [v[n][1] for v in each]) for n in each[0]}
        panels.append((mix, curves))
    plots(path, panels, x=_X, y=y)
