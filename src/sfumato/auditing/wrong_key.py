"""What a key is worth: accuracy with the right key, with wrong ones, and against the angle between the two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from sfumato.core import metrics
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.intervals import mean_interval, share_interval
from sfumato.core.knowledge import Opened
from sfumato.core.randomness import derive_seed
from sfumato.mechanisms.capabilities import Rotates

ANGLES = tuple(float(angle) for angle in np.linspace(0.0, np.pi, 13))
_MOST = 2000
"""So many victims are enough for a curve."""


def wrong_key(mechanism: Rotates, victim: Dataset, seed: int) -> dict[str, Any]:
    """Accuracy when the answer is read with a key that is off by each of ``ANGLES``: of the first utility label, of
    every one (``labels``), and, where there are several, their mean over labels (``mean``).

    A key is off by φ if the direction it reads makes the angle φ with the record's row; the plane of the error is
    drawn at random. ``uniform`` is the accuracy with a direction drawn uniformly, what a thief without any key has.
    """
    few = victim.take(slice(0, _MOST))
    sent = mechanism.opened(few, seed=seed)
    rng = np.random.default_rng(derive_seed(seed, "wrong key"))
    right: list[Mapping[str, metrics.Values]] = []
    for angle in (*ANGLES, None):
        scores = few.schema.by_label(mechanism.read(sent, _off_by(sent, angle, rng)))
        right.append({label: metrics.correct(few.utility[label], part) for label, part in scores.items()})
    labels = {label: _readings([one[label] for one in right], few, [label]) for label in right[0]}
    several = [np.mean(list(one.values()), axis=0) for one in right]
    first = next(iter(labels.values()))
    return {
        "d": int(sent.key.shape[1]),
        "n": len(few),
        "angles": list(ANGLES),
        **first,
        "labels": labels,
        **({"mean": _readings(several, few, list(labels))} if len(labels) > 1 else {}),
    }


def _readings(right: Sequence[metrics.Values], data: Dataset, labels: Sequence[str]) -> dict[str, Any]:
    """With the key off by each angle and with one drawn uniformly; and what the most frequent classes get."""
    interval = share_interval if len(labels) == 1 else partial(mean_interval, limits=(0.0, 1.0))
    read = [{"accuracy": float(hits.mean()), "ci": list(interval(hits, data.ids))} for hits in right]
    most = [np.bincount(data.utility[label]).max() / len(data) for label in labels]
    return {"chance": float(np.mean(most)), "curve": read[:-1], "uniform": read[-1]}


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
