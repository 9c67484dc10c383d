"""The demo: every mechanism, small, on the embedded digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sfumato.auditing import Effort
from sfumato.mechanisms.base import Progress, no_progress
from sfumato.report import build_report
from sfumato.workflow.compare import Point, compare

DATA = {"source": "digits", "utility": ["digit"]}
POINTS = (
    Point("none", {"epochs": 8}),
    *(Point("noisy", {"noise": noise, "epochs": 8}) for noise in (0.3, 0.9)),
    Point("dnn", {"epochs": 8}),
    *(Point("dnn-resized", {"noise": noise, "epochs": 8}) for noise in (0.1, 0.5)),
    *(Point("ran", {"lam": lam, "epochs": 8}) for lam in (0.1, 0.01)),
)


def run_demo(
    out: Path, *, seed: int = 0, progress: Progress = no_progress, say: Callable[[str], None] = lambda _: None
) -> tuple[list[dict[str, Any]], Path]:
    """Fit, attack and report; an interrupted demo goes on where it stopped."""
    effort = Effort(attack_steps=250)
    results = compare(POINTS, DATA, out, seed=seed, effort=effort, progress=progress, say=say)
    page = build_report([out], out / "report.html", title="sfumato demo: 5,000 real digits")
    return results, page


def summary(results: Sequence[dict[str, Any]], page: Path) -> list[str]:
    """Six lines for the terminal."""
    best: dict[str, dict[str, Any]] = {}
    for result in results:
        name = result["mechanism"]
        if name not in best or _accuracy(result) > _accuracy(best[name]):
            best[name] = result
    lines = []
    for name, result in best.items():
        mse = result["worst"]["reconstruction"]
        setting = "".join(f" {k}={v:g}" for k, v in result["params"].items() if k in ("lam", "noise"))
        lines.append(
            f"{name + setting:<22} accuracy {_accuracy(result):6.1%}   best reconstruction attack: "
            f"MSE {mse['value']:.4f} [{mse['ci'][0]:.4f}, {mse['ci'][1]:.4f}]  (no release: {mse['baseline']:.4f})"
        )
    return [*lines, f"report: {page.resolve()}"]


def _accuracy(result: dict[str, Any]) -> float:
    return float(next(score["value"] for score in result["utility"] if score["primary"]))
