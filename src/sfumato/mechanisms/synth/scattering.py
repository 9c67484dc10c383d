"""Features that need no training: averages of wavelet moduli, of first and second order (Bruna and Mallat 2013)."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F

ANGLES = 8
POOL = 4


class Scattering(nn.Module):
    """|x ∗ ψ₁|, |x ∗ ψ₂| and ||x ∗ ψ₁| ∗ ψ₂| for two scales and ``ANGLES`` directions, averaged over 4×4 cells.

    (n, C, H, W) → (n, C·81, ⌊H/4⌋, ⌊W/4⌋) with the average of x itself. The filters are fixed: nothing is learnt from
    any record, so the features of a record are a function of that record alone.
    """

    fine: torch.Tensor
    coarse: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fine", morlet(7, 0.8, 3 * math.pi / 4))
        self.register_buffer("coarse", morlet(13, 1.6, 3 * math.pi / 8))

    def channels(self, shape: tuple[int, ...]) -> int:
        """How many maps a record of this shape becomes."""
        return int(shape[0]) * (1 + 2 * ANGLES + ANGLES * ANGLES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, channels, height, width = x.shape
        planes = x.reshape(n * channels, 1, height, width)
        first = _modulus(planes, self.fine)  # (nC, A, H, W)
        second = _modulus(planes, self.coarse)  # (nC, A, H, W)
        halved = F.avg_pool2d(first, 2)  # its frequencies are low now
        both = _modulus(halved.flatten(0, 1).unsqueeze(1), _halved(self.coarse))  # (nCA, A, H/2, W/2)
        parts = [
            F.avg_pool2d(planes, POOL),
            F.avg_pool2d(first, POOL),
            F.avg_pool2d(second, POOL),
            F.avg_pool2d(both, POOL // 2).reshape(n * channels, ANGLES * ANGLES, height // POOL, width // POOL),
        ]
        return torch.cat(parts, 1).reshape(n, -1, height // POOL, width // POOL)


def morlet(side: int, width: float, frequency: float) -> torch.Tensor:
    """Complex Morlet wavelets of mean zero in ``ANGLES`` directions, (2A, 1, side, side): real parts first."""
    place = torch.arange(side, dtype=torch.float64) - side // 2
    down, across = torch.meshgrid(place, place, indexing="ij")
    found = []
    for number in range(ANGLES):
        angle = math.pi * number / ANGLES
        along = across * math.cos(angle) + down * math.sin(angle)
        beside = down * math.cos(angle) - across * math.sin(angle)
        window = torch.exp(-(along**2 + 0.25 * beside**2) / (2 * width**2))
        wave = torch.exp(1j * frequency * along)
        wavelet = window * (wave - (window * wave).sum() / window.sum())
        found.append(wavelet / wavelet.abs().sum())
    wavelets = torch.stack(found).unsqueeze(1)
    return torch.cat([wavelets.real, wavelets.imag]).float()


def _halved(bank: torch.Tensor) -> torch.Tensor:
    """The same wavelets on a grid of half the fineness."""
    middle = bank.shape[-1] // 2
    few = bank[..., middle % 2 :: 2, middle % 2 :: 2]
    few = few - few.mean(dim=(-1, -2), keepdim=True)
    return few / few.abs().sum(dim=(-1, -2), keepdim=True)


def _modulus(planes: torch.Tensor, bank: torch.Tensor) -> torch.Tensor:
    """|plane ∗ ψ| for every wavelet: (m, 1, H, W) → (m, A, H, W)."""
    edge = bank.shape[-1] // 2
    both = F.conv2d(F.pad(planes, (edge, edge, edge, edge)), bank)
    real, imaginary = both.chunk(2, dim=1)
    return torch.sqrt(real**2 + imaginary**2 + 1e-12)
