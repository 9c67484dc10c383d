"""Many small networks of one shape side by side: one batched product instead of one small product each."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class BatchedMLP(nn.Module):
    """``users`` networks FC → ELU → … → FC: (users, B, in) → (users, B, out), each with its own weights.

    All start from the same weights, so that a network comes out the same alone and among others.
    """

    def __init__(self, users: int, *widths: int) -> None:
        super().__init__()
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        for a, b in pairwise(widths):
            bound = a**-0.5
            self.weights.append(nn.Parameter(_uniform(bound, a, b).repeat(users, 1, 1)))
            self.biases.append(nn.Parameter(_uniform(bound, 1, b).repeat(users, 1, 1)))

    def forward(self, x: Tensor) -> Tensor:
        last = len(self.weights) - 1
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias, x, weight)
            if place < last:
                x = F.elu(x)
        return x


def _uniform(bound: float, *shape: int) -> Tensor:
    return torch.empty(*shape).uniform_(-bound, bound)
