"""Adam in one pass over the weights takes the steps of Adam in many."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from sfumato.nets.training_loop import adam, take_step


class Turned(nn.Module):
    """A product whose gradient comes in another order in memory than its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 3))

    def forward(self, x: Tensor) -> Tensor:  # (B, 5) → (B, 3)
        return torch.einsum("oi,bo->bi", self.weight, x)


def test_networks_of_matrices_take_the_same_steps_in_one_pass() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(7, 5, bias=False), nn.BatchNorm1d(5), nn.ReLU(), Turned())
    other = copy.deepcopy(network)
    optimisers = adam(network.parameters(), 1e-2), torch.optim.Adam(other.parameters(), 1e-2, fused=False)
    assert optimisers[0].param_groups[0]["fused"]
    for _ in range(20):
        x, y = torch.randn(16, 7), torch.randn(16, 3)
        for optimiser, one in zip(optimisers, (network, other), strict=True):
            take_step(optimiser, (one(x) - y).square().mean())
    for mine, theirs in zip(network.parameters(), other.parameters(), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-4)


def test_convolutions_keep_to_many_passes() -> None:
    assert not adam(nn.Conv2d(1, 2, 3).parameters(), 1e-2).param_groups[0]["fused"]
