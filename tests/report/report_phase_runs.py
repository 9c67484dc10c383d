"""Fake run folders of rotated messages."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from report_runs import score, utility, write_run

CONDITIONS = ["the decoys are alike", "keys stay on the device"]
SINGLE = ("inverse-residual", "inverse-critic", "inverse-frame", "inverse-average", "inverse-intersect")


def promise(d: int) -> dict[str, Any]:
    return {"kind": "anonymity", "statement": "One of d.", "anonymity": 1 / d, "conditions": CONDITIONS}


def attacks(d: int, *, single: float = 0.06, best: float | None = 0.02) -> list[dict[str, Any]]:
    found = [
        score(name, "reconstruction", "mse", single + 0.001 * i, half=0.002, baseline=0.067, control=0.001)
        for i, name in enumerate(SINGLE)
    ]
    if best is not None:
        found.append(
            score("list-decoder", "list-reconstruction", "mse", best, half=0.001, baseline=0.06, control=0.001)
        )
    angle = score("key-angle", "key", "angle", 1.1, half=0.03, baseline=math.pi / 2, control=0.1)
    folded = score("key-angle", "key", "angle-folded", 0.7, half=0.03, baseline=math.pi / 4, control=0.1, primary=False)
    found += [{**entry, "better_for_owner": "higher"} for entry in (angle, folded)]
    found += [
        score(f"rows-{name}", "row", "rate", 1 / d + 0.004 * i, half=0.03, baseline=1 / d, control=1.0)
        for i, name in enumerate(("key", "decode", "critic"))
    ]
    found.append(score("reid-span", "reidentification", "rate", 0.87, baseline=0.01, control=0.9))
    found.append(score("label-cloud-trees", "result", "advantage", 0.2, baseline=0.0, control=0.5, target="digit"))
    return found


def wrong_key(d: int = 2) -> dict[str, Any]:
    angles = [float(angle) for angle in np.linspace(0, math.pi, 13)]
    curve = [0.55 + 0.4 * math.cos(angle) for angle in angles]
    entries = [{"accuracy": value, "ci": [value - 0.02, value + 0.02]} for value in curve]
    uniform = {"accuracy": 0.4 / d + 0.1, "ci": [0.4 / d + 0.08, 0.4 / d + 0.12]}
    return {"d": d, "n": 2000, "chance": 0.114, "angles": angles, "curve": entries, "uniform": uniform}


def tensors(d: int, shape: tuple[int, ...] = (1, 8, 8), row: tuple[int, ...] = (6, 4, 4)) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    originals = rng.random((8, *shape), dtype=np.float32)
    recon = {f"recon/{name}": originals * (0.3 + 0.1 * i) for i, name in enumerate(SINGLE)}
    listed = np.stack([originals * 0.9 / (i + 1) for i in range(d)], axis=1)
    release = rng.standard_normal((8, d, *row)).astype(np.float32)
    return {"originals": originals, "release": release, **recon, "recon-list/list-decoder": listed}


def phase_run(
    path: Path, d: int = 2, *, best: float | None = 0.02, single: float = 0.06, keys: bool = True, **more: Any
) -> Path:
    given: dict[str, Any] = {
        "params": {"d": d, "variant": "exchangeable", "lam": 1.0, "channels": 0, "model": "lenet"},
        "attacks": attacks(d, single=single, best=best),
        "tensors": tensors(d),
        "guarantee": promise(d),
        "more_scores": {"wrong_key": wrong_key(d)} if keys else {},
        "use": utility(0.98),
    }
    return write_run(path, "phase", **{**given, **more})
