"""Maximum mean discrepancy: how far apart two samples are in the eyes of a Gaussian kernel."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_FEATURES = 500
"""Random Fourier features: D of Louizos et al. 2015."""


def fourier_mmd(a: Tensor, b: Tensor, gamma: float) -> Tensor:
    """MMD² of samples (N, d) and (M, d) under exp(−‖u − v‖²/γ), by random Fourier features ψ:

    ‖mean ψ(a) − mean ψ(b)‖², ψ(u) = √(2/D) cos(√(2/γ) uW + β), W standard normal, β uniform on [0, 2π).
    """
    frequencies = math.sqrt(2.0 / gamma) * torch.randn(a.shape[1], _FEATURES)
    phase = 2.0 * math.pi * torch.rand(_FEATURES)
    difference = (a @ frequencies + phase).cos().mean(0) - (b @ frequencies + phase).cos().mean(0)
    return 2.0 / _FEATURES * difference.square().sum()


def groups_mmd(z: Tensor, s: Tensor) -> Tensor:
    """Sum over private labels: MMD² between both groups of a binary one, or between each group and all records.

    Coordinates are divided by their standard deviation, and γ = 2d is the mean squared distance of two such records.
    At the paper's fixed scale the encoder gets away with a z₁ too small for the kernel to tell records apart.
    """
    gamma = 2.0 * z.shape[1]
    z = z / z.std(0).clamp_min(1e-6)
    total = z.new_zeros(())
    for codes in s.unbind(1):
        groups = [z[codes == code] for code in range(int(codes.max()) + 1) if (codes == code).any()]
        if len(groups) == 2:
            total = total + fourier_mmd(groups[0], groups[1], gamma)
        elif len(groups) > 2:
            total = total + torch.stack([fourier_mmd(group, z, gamma) for group in groups]).sum()
    return total
