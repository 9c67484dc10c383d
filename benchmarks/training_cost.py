"""A fit costs the passes that it needs: ``dnn`` beside the same network trained by hand."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.against import Against
from benchmarks.interleaved import interleaved, threads
from sfumato.data import load_splits
from sfumato.mechanisms.baselines.plain_features import DNN

TARGET = 1.15
RECORDS, ROUNDS = 3000, 7


def run(small: bool = False) -> dict[str, Any]:
    """One epoch of ``dnn`` on digits against a bare loop: forward, backward and Adam, same layers and batches."""
    owner = load_splits("digits", utility=["digit"], limit=500 if small else RECORDS).owner
    with threads(1):
        built = DNN(epochs=1).fit(owner)
        network = nn.Sequential(built.encoder_, built.classifier_).train()
        x, y = torch.from_numpy(owner.x.copy()), torch.from_numpy(owner.utility["digit"].copy())

        def by_hand() -> None:
            optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
            for rows in torch.randperm(len(x)).split(built.batch):
                optimiser.zero_grad()
                F.cross_entropy(network(x[rows]), y[rows]).backward()
                optimiser.step()

        ways = {"fit": lambda: DNN(epochs=1).fit(owner), "by hand": by_hand}
        rounds = interleaved(ways, 3 if small else ROUNDS, warm=1)
    ratio = rounds.ratio("fit", "by hand")
    return {
        "claim": f"an epoch of fit takes ≤ {TARGET} × the time of a bare loop of forward, backward and Adam",
        "holds": ratio.median <= TARGET,
        "ratios": {"fit over a bare loop": {**ratio.to_json(), "at most": TARGET}},
        "against": [
            Against(
                "PyTorch, by hand",
                "an epoch of training",
                "seconds",
                rounds.median("fit"),
                rounds.median("by hand"),
                ratio,
            ).to_json()
        ],
    }
