"""What a key is worth: accuracy with the right key, with wrong ones, and against the angle between the two."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.core import metrics
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.intervals import share_interval
from sfumato.core.knowledge import Opened
from sfumato.core.randomness import derive_seed
from sfumato.mechanisms.capabilities import Rotates

ANGLES = tuple(float(angle) for angle in np.linspace(0.0, np.pi, 13))
_MOST = 2000
"""So many victims are enough for a curve."""


def wrong_key(mechanism: Rotates, victim: Dataset, seed: int) -> dict[str, Any]:
    """Accuracy on the first utility label when the answer is read with a key that is off by each of ``ANGLES``.

    A key is off by φ if the direction it reads makes the angle φ with the record's row; the plane of the error is
    drawn at random. ``uniform`` is the accuracy with a direction drawn uniformly, what a thief without any key has.
    """
    few = victim.take(slice(0, _MOST))
    sent = mechanism.opened(few, seed=seed)
    label, truth = next(iter(few.utility.items()))
    rng = np.random.default_rng(derive_seed(seed, "wrong key"))
    curve = []
    for angle in (*ANGLES, None):
        scores = mechanism.read(sent, _off_by(sent, angle, rng))
        right = metrics.correct(truth, few.schema.by_label(scores)[label])
        curve.append({"accuracy": float(right.mean()), "ci": list(share_interval(right, few.ids))})
    return {
        "d": int(sent.key.shape[1]),
        "n": len(few),
        "chance": float(np.bincount(truth).max() / len(truth)),
        "angles": list(ANGLES),
        "curve": curve[:-1],
        "uniform": curve[-1],
    }


def _off_by(sent: Opened, angle: float | None, rng: np.random.Generator) -> FloatArray:
    """Keys whose first column is ``angle`` away from the right key's, or uniform for None; the rest is not read."""
    direction = sent.key[:, :, 0].astype(np.float64)  # (N, d): where the record's row points
    other = rng.standard_normal(direction.shape)
    if angle is None:
        turned = other / np.linalg.norm(other, axis=1, keepdims=True)
    else:
        across = other - (other * direction).sum(axis=1, keepdims=True) * direction
        across /= np.linalg.norm(across, axis=1, keepdims=True)
        turned = np.cos(angle) * direction + np.sin(angle) * across
    keys = sent.key.copy()
    keys[:, :, 0] = turned
    return keys
