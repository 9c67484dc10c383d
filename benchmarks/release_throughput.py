"""``release`` costs next to nothing beyond the encoder's forward pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from benchmarks.against import Against
from benchmarks.interleaved import figure, interleaved
from sfumato.core.dataset import Dataset
from sfumato.data import load_splits
from sfumato.mechanisms.ran.mechanism import RAN

TARGET = 1 / 0.95
ROUNDS = 15


def run(small: bool = False) -> dict[str, Any]:
    """A bare forward pass (same batch size) before and after ``release`` of 20,000 records."""
    splits = load_splits("digits", limit=1000)
    ran = RAN(epochs=1).fit(splits.owner)
    copies = 5 if small else 100
    x = np.tile(splits.victim.x, (copies, 1, 1, 1))
    data = Dataset(x, splits.schema, utility={"digit": np.tile(splits.victim.utility["digit"], copies)})
    tensor = torch.from_numpy(x.copy())
    encoder = ran.encoder_.eval()

    def bare() -> None:
        with torch.inference_mode():
            for start in range(0, len(tensor), 1024):
                encoder(tensor[start : start + 1024])

    ways = {"bare": bare, "release": lambda: ran.release(data), "bare again": bare}
    rounds = interleaved(ways, 3 if small else ROUNDS, warm=1)
    ratio = rounds.ratio("release", ("bare", "bare again"))
    per = 1e6 / len(x)
    return {
        "claim": "release takes at most 1/0.95 of the time of the encoder's bare forward pass",
        "holds": ratio.median <= TARGET,
        "ratios": {"release over a bare forward pass": {**ratio.to_json(), "at most": figure(TARGET)}},
        "against": [
            Against(
                "PyTorch, by hand",
                "release of features",
                "µs a record",
                per * rounds.median("release"),
                per * rounds.median("bare"),
                ratio,
            ).to_json()
        ],
        "figures": {"records a second": round(len(x) / rounds.median("release"))},
    }
