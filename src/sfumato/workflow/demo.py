"""The demo: every mechanism, small, on the embedded digits, beside three baselines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sfumato.auditing import Effort
from sfumato.mechanisms.base import Progress, no_progress
from sfumato.report import build_report
from sfumato.workflow.compare import Point, compare

DATA = {"source": "digits", "utility": ["odd", "circle"], "private": ["ge5"]}
_VAE = "points/vae"
POINTS = (
    Point("none", {"epochs": 8}),
    Point("noisy", {"noise": 0.3, "epochs": 8}),
    Point("dnn", {"epochs": 8}),
    Point("ran", {"lam": 0.01, "epochs": 8}),
    Point("vae", {"epochs": 30}),
    Point("filter-linear", {"budget": 300.0}, base=_VAE),
    Point("filter", {"budget": 300.0}, base=_VAE),
    Point("phase", {"d": 2, "epochs": 8}),
    Point("synth", {"epsilon": 3.0, "steps": 10}),
    Point("ars", {"variant": "published", "epsilon": 1.0, "parties": 3, "epochs": 12}, tag="published"),
    Point("ars", {"variant": "hardened", "epsilon": 1.0, "parties": 3, "epochs": 12}, tag="hardened"),
)


def run_demo(
    out: Path, *, seed: int = 0, progress: Progress = no_progress, say: Callable[[str], None] = lambda _: None
) -> tuple[list[dict[str, Any]], Path]:
    """Fit, attack and report; an interrupted demo goes on where it stopped."""
    effort = Effort(
        attack_steps=80,
        averages=(),
        inverted=32,
        inversion_steps=40,
        inversion_starts=1,
        shadow_passes=0,
        suspects=1000,
        draws=100_000,
        questions=8,
        student_width=8,
    )
    results = compare(POINTS, DATA, out, seed=seed, effort=effort, progress=progress, say=say)
    page = build_report([out], out / "report.html", title="sfumato demo: 5,000 real digits, odd or even, hide ≥ 5")
    return results, page


def summary(results: Sequence[dict[str, Any]], page: Path) -> list[str]:
    """A line for every mechanism: what can be done with the release, and what the best attacks read and rebuild.

    Of several settings the last is shown: they go from tame to strong.
    """
    last = {f"{r['mechanism']} {r['params'].get('variant', '')}".strip(): r for r in results}
    return [*(_line(name, result) for name, result in last.items()), f"report: {page.resolve()}"]


def _line(name: str, result: dict[str, Any]) -> str:
    knobs = ("lam", "noise", "budget", "d", "epsilon")
    setting = "".join(f" {k}={v:g}" for k, v in result["params"].items() if k in knobs)
    useful = f"{name + setting:<27} odd or even {_accuracy(result):6.1%}"
    mse = result["worst"].get("reconstruction")
    if mse is None:  # a synthetic record belongs to nobody: there is nothing to read or to rebuild
        member, bound = (result["worst"][threat]["value"] for threat in ("membership", "differential-privacy"))
        return (
            f"{useful}   synthetic records: membership advantage {member:.3f}, canaries show ε ≥ {bound:.2f}"
            f"  (claimed: {result['guarantee']['epsilon']:.2f})"
        )
    listed = result["worst"].get("list-reconstruction")
    lists = "" if listed is None else f"; the best of a list of {result['params']['d']}: {listed['value']:.4f}"
    return (
        f"{useful}   ≥ 5 read {_read(result):6.1%}"
        f"   best reconstruction MSE {mse['value']:.4f}{lists}  (no release: {mse['baseline']:.4f})"
    )


def _read(result: dict[str, Any]) -> float:
    """The accuracy of the worst attack on the private label."""
    worst = result["worst"]["attribute:ge5"]["attack"]
    return float(next(s["value"] for s in result["attacks"] if (s["attack"], s["metric"]) == (worst, "accuracy")))


def _accuracy(result: dict[str, Any]) -> float:
    return float(next(score["value"] for score in result["utility"] if score["primary"]))
