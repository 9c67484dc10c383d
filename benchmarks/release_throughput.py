"""``release`` costs next to nothing beyond the encoder's forward pass."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
import torch

from sfumato.core.dataset import Dataset
from sfumato.data import load_splits
from sfumato.mechanisms.ran.mechanism import RAN

TARGET = 0.95
ROUNDS = 15


def run() -> dict[str, Any]:
    """Interleaved rounds of a bare forward pass (same batch size) and of ``release`` on 20,000 records."""
    splits = load_splits("digits", limit=1000)
    ran = RAN(epochs=1).fit(splits.owner)
    x = np.tile(splits.victim.x, (100, 1, 1, 1))
    data = Dataset(x, splits.schema, utility={"digit": np.tile(splits.victim.utility["digit"], 100)})
    tensor = torch.from_numpy(x.copy())
    encoder = ran.encoder_.eval()

    def bare() -> None:
        with torch.inference_mode():
            for start in range(0, len(tensor), 1024):
                encoder(tensor[start : start + 1024])

    def release() -> None:
        ran.release(data)

    bare(), release()
    ratios, seconds = [], []
    for _ in range(ROUNDS):
        took = []
        for work in (bare, release, bare):
            started = time.perf_counter()
            work()
            took.append(time.perf_counter() - started)
        ratios.append((took[0] + took[2]) / 2 / took[1])
        seconds.append(took[1])
    ratio = statistics.median(ratios)
    return {
        "claim": "release reaches at least 0.95 of the bare encoder's forward throughput",
        "ratio": round(ratio, 3),
        "quartiles": [round(q, 3) for q in statistics.quantiles(ratios, n=4)],
        "records_per_second": round(len(x) / statistics.median(seconds)),
        "target": TARGET,
        "holds": ratio >= TARGET,
    }
