"""Smooth pictures in few numbers: the low frequencies of the discrete cosine transform."""

from __future__ import annotations

import math

import torch


def cosine_basis(shape: tuple[int, ...], keep: int) -> torch.Tensor:
    """Orthonormal columns (D, m): the ``keep`` × ``keep`` lowest frequencies of each channel of (C, H, W) pictures.

    For signals (C, L) the ``keep``² lowest of each channel; for anything else the identity.
    """
    if len(shape) == 3:
        channels, height, width = shape
        plane = torch.kron(_cosines(height, min(keep, height)), _cosines(width, min(keep, width)))
    elif len(shape) == 2:
        channels, plane = shape[0], _cosines(shape[1], min(keep * keep, shape[1]))
    else:
        return torch.eye(math.prod(shape), dtype=torch.float64)
    return torch.kron(torch.eye(channels, dtype=torch.float64), plane)


def _cosines(length: int, keep: int) -> torch.Tensor:
    """DCT-II, (length, keep), orthonormal columns: √(2/L)·cos(π(i + ½)j/L), the first one √(1/L)."""
    place = torch.arange(length, dtype=torch.float64).unsqueeze(1) + 0.5
    frequency = torch.arange(keep, dtype=torch.float64)
    basis = math.sqrt(2.0 / length) * torch.cos(math.pi * place * frequency / length)
    basis[:, 0] = math.sqrt(1.0 / length)
    return basis
