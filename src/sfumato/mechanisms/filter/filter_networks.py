"""Filters f(z, ε, y) for several users at once, in two shapes.

Either way z̃ = z + t·(shift + A_ε·ε) with z ~ q(z|x) = N(μ, Σ) and ε ~ N(0, I): given the record, its label and ε₀ the
release is a Gaussian N(μ + t·shift, Σ + t²·A_ε·A_εᵀ), so its divergence from q(z|x) has a closed form. t is 1 until
the budget demands less.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import torch
from torch import Tensor, nn

from sfumato.mechanisms.filter.batched_mlp import BatchedMLP

Shape = Literal["linear", "nonlinear"]

_HIDDEN = 64
_CHANCE = 10
"""Numbers in ε₀ at most: enough to send equal records to different places, few enough for a small file."""


class Filters(nn.Module, ABC):
    """One filter for each of ``users``, for latents of ``latent`` numbers and one-hot labels of ``labels``."""

    chance: int = 0
    """How many random numbers ε₀ enter the shift."""

    def __init__(self, users: int, latent: int) -> None:
        super().__init__()
        first = 0.1 * torch.eye(latent) + 0.01 * torch.randn(latent, latent)
        self.noise = nn.Parameter(first.repeat(users, 1, 1))  # A_ε
        self.register_buffer("scale", torch.ones(users))  # t
        self.scale: Tensor

    def forward(self, mean: Tensor, y: Tensor, chance: Tensor) -> tuple[Tensor, Tensor]:
        """t·shift (U, B, d) and t·A_ε (U, d, d) for means (U, B, d), labels (U, B, k), ε₀ (U or 1, B, ``chance``)."""
        t = self.scale[:, None, None]
        return t * self._shift(mean, y, chance.expand(len(mean), -1, -1)), t * self.noise

    @abstractmethod
    def _shift(self, mean: Tensor, y: Tensor, chance: Tensor) -> Tensor:
        """(U, B, d)."""


class LinearFilters(Filters):
    """z̃ = z + A[ε; y] (Eq. 23), with A = [A_ε, A_y]."""

    def __init__(self, users: int, latent: int, labels: int) -> None:
        super().__init__(users, latent)
        self.towards = nn.Parameter(0.1 * torch.randn(labels, latent).repeat(users, 1, 1))  # A_yᵀ

    def _shift(self, mean: Tensor, y: Tensor, chance: Tensor) -> Tensor:
        return torch.bmm(y, self.towards)


class NonlinearFilters(Filters):
    """z̃ = z + m(μ, ε₀, y) + A_ε·ε with a small network m (footnote 2: "the filter can be a small neural network").

    m reads the mean of q(z|x) instead of the sample z, which keeps the release Gaussian given ε₀.
    """

    def __init__(self, users: int, latent: int, labels: int) -> None:
        super().__init__(users, latent)
        self.chance = min(latent, _CHANCE)
        self.network = BatchedMLP(users, latent + self.chance + labels, _HIDDEN, _HIDDEN, latent)
        with torch.no_grad():
            self.network.weights[-1] *= 0.1  # begin close to z̃ = z

    def _shift(self, mean: Tensor, y: Tensor, chance: Tensor) -> Tensor:
        out: Tensor = self.network(torch.cat([mean, chance, y], dim=-1))
        return out


def filters(shape: Shape, users: int, latent: int, labels: int) -> Filters:
    """Fresh filters of a shape; their weights come from torch's current seed."""
    kind = LinearFilters if shape == "linear" else NonlinearFilters
    return kind(users, latent, labels)
