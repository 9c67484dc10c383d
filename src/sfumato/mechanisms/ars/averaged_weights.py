"""Several parties train copies of one network, each on its own records, and average the weights (FedAvg)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sfumato.mechanisms.ars.training_stages import Play

FEWEST = 2
"""Records below which batch norm has nothing to normalise by."""


def hand_out(shared: nn.Module, copies: Sequence[nn.Module]) -> None:
    """Give every copy the shared weights."""
    for each in copies:
        each.load_state_dict(shared.state_dict())


def average(shared: nn.Module, copies: Sequence[nn.Module], sizes: Sequence[int]) -> None:
    """Set the shared weights, and what batch norms have counted, to the mean of the copies' by numbers of records."""
    states = [each.state_dict() for each in copies]
    weights = torch.tensor(sizes, dtype=torch.float64) / sum(sizes)
    mean: dict[str, Tensor] = {}
    for name, first in states[0].items():
        if first.is_floating_point():
            stacked = torch.stack([state[name].double() for state in states])
            mean[name] = torch.tensordot(weights, stacked, dims=1).to(first.dtype)
        else:
            mean[name] = first.clone()
    shared.load_state_dict(mean)


def play_together(plays: Sequence[Play], sizes: Sequence[int], rows: Tensor) -> dict[str, float]:
    """One mini-batch at every party that has such rows; a smaller party has fewer. Losses are means over parties."""
    means: dict[str, float] = {}
    for play, size in zip(plays, sizes, strict=True):
        own = rows[rows < size]
        if len(own) < FEWEST:
            continue
        for name, loss in play(own).items():
            means[name] = means.get(name, 0.0) + loss / len(plays)
    return means
