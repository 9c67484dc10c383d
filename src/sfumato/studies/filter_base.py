"""What the studies of `filter` share: whose figure a score is, paired rows, and budgets in the paper's unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.auditing import CPU, FULL, SMOKE, Effort
from sfumato.core.intervals import Interval, mean_interval
from sfumato.core.run_folder import read_json
from sfumato.studies.papers import paper
from sfumato.studies.rows import Better, Results, Row, Scored, aligned, difference, highest, plain_row
from sfumato.studies.verdicts import Asked, Setting
from sfumato.workflow import Point

PAPER = paper("filter")
SMALL = "probe-elu"
"""The paper's own classifier (§6.5.3)."""
SETTINGS: tuple[Setting, ...] = ("paper", "adaptive")
READER: Mapping[Setting, str] = {"paper": "the paper's classifier", "adaptive": "best probe"}

VAE = "points/vae"
PAPERS_BUDGETS = (1.5, 3.0, 5.0)
"""b as the paper names it, in half squared norms: the unit in which its figures come out."""
EFFORTS: Mapping[str, Effort] = {
    name: replace(effort, threats=("attribute",), geometry="pca" if name == "smoke" else "umap")
    for name, effort in {"smoke": SMOKE, "cpu": CPU, "full": FULL}.items()
}
LIMIT = {"smoke": 1500}
SEEDS = {"smoke": (0,), "cpu": (0, 1, 2), "full": (0, 1, 2, 3, 4)}

Result = Mapping[str, Any]


def few_steps(scale: str) -> dict[str, Any]:
    """What a filter trains with at smoke scale."""
    return {"steps": 60} if scale == "smoke" else {}


def within(mechanism: str, budget: float, scale: str, divergence: str = "norm") -> Point:
    """A mechanism on the shared autoencoder with its budget in that unit, which its name tells."""
    steps = few_steps(scale) if mechanism != "gaussian" else {}
    return Point(mechanism, {"budget": budget, "divergence": divergence, **steps}, base=VAE, tag=divergence)


def named(results: Results, mechanism: str, divergence: str = "norm") -> list[Result]:
    """The points of a mechanism whose budget is in that unit, from the smallest budget on."""
    mine = [r for r in results if r["mechanism"] == mechanism and r["params"].get("divergence", "kl") == divergence]
    return sorted(mine, key=lambda result: float(result["params"]["budget"]))


def raw(results: Results) -> Result:
    """The latent without a filter, *emb-raw* in the paper."""
    return next(result for result in results if result["mechanism"] == "vae")


def private(result: Result, label: str, setting: Setting, metric: str = "accuracy") -> Mapping[str, Any]:
    """What the paper's classifier, or the best of all probes, reads of a private label."""
    found = [s for s in result["attacks"] if s["metric"] == metric and s["target"] == label]
    return highest(s for s in found if setting == "adaptive" or s["attack"] == SMALL)


def useful(result: Result, label: str, metric: str = "accuracy") -> Mapping[str, Any]:
    """What the better of own and fresh classifier reads of a utility label."""
    return highest(s for s in result["utility"] if s["metric"] == metric and s["target"] == label)


def moved(result: Result) -> Row | None:
    """½E‖z̃ − z‖² on held-out records: a budget in whatever unit, told in the one of the paper's figures."""
    norm = read_json(Path(result["folder"]) / "base.json").get("norm")
    if norm is None:
        return None
    return plain_row(f"{result['point']}: distortion in half squared norms", "½E‖z̃ − z‖²", "lower", float(norm))


def paired(name: str, ours: Scored, theirs: Scored, *, better: Better, asked: Asked | None = None) -> Row:
    """The difference of two accuracies over the same victims, ours less theirs."""
    value, ci = difference(ours, theirs)
    score = ours[1]
    return Row(
        name, "accuracy", better, None, value, real(ci), asked=asked, n=score.get("n"), people=score.get("people")
    )


def further(
    name: str,
    first: tuple[Scored, Scored],
    second: tuple[Scored, Scored],
    *,
    better: Better,
    asked: Asked | None = None,
) -> Row:
    """How much more the first pair of accuracies differs than the second, over the same victims: (a − b) − (c − d)."""
    (a, b, c, d), whose = aligned(*first, *second)
    gap = (a - b) - (c - d)
    score = first[0][1]
    ci = real(mean_interval(gap, whose))
    return Row(name, "accuracy", better, None, float(gap.mean()), ci, asked=asked, n=score.get("n"))


def apart(
    name: str, ours: Mapping[str, Any], theirs: Mapping[str, Any], *, better: Better, asked: Asked | None = None
) -> Row:
    """The difference of two figures that are no means over records (AUROC, nats), ours less theirs.

    Both are of the same victims; the half-widths are added as of two samples, √(a² + b²), which is wider than paired.
    """
    value = float(ours["value"]) - float(theirs["value"])
    low = _root(ours["value"] - ours["ci"][0], theirs["ci"][1] - theirs["value"])
    high = _root(ours["ci"][1] - ours["value"], theirs["value"] - theirs["ci"][0])
    ci = real((value - low, value + high))
    return Row(
        name, str(ours["metric"]), better, None, value, ci, asked=asked, n=ours.get("n"), people=ours.get("people")
    )


def average(name: str, scores: Sequence[Scored], *, printed: float | None, asked: Asked | None = None) -> Row:
    """The mean of several labels' accuracies, with an interval over the victims that they share."""
    series, whose = aligned(*scores)
    mean = np.mean(series, axis=0)  # (N,)
    first = scores[0][1]
    shares = [float(score["baseline"]) for _, score in scores]
    return Row(
        name=name,
        metric="accuracy",
        better=first["better_for_owner"],
        paper=printed,
        ours=float(mean.mean()),
        ci=real(mean_interval(mean, whose)),
        asked=asked,
        n=first.get("n"),
        people=first.get("people"),
        majority=sum(shares) / len(shares),
    )


def real(ci: Interval) -> Interval | None:
    """None where both ends are the same: that is no interval."""
    return ci if ci[0] < ci[1] else None


def _root(a: float, b: float) -> float:
    return float((a**2 + b**2) ** 0.5)
