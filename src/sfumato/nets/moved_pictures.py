"""Pictures moved a little in training: the crop and flip of He et al. 2016 (§4.2)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

MOST = 8
"""A crop is off by up to an eighth of the side: 4 of 32."""


def moved(x: Tensor) -> Tensor:
    """Each picture (B, C, H, W) shifted by up to an eighth of its side, with zeros beyond its edge, and in half of the
    cases mirrored from left to right; drawn from torch's own generator."""
    batch, _, height, width = x.shape
    down, right = height // MOST, width // MOST
    wide = F.pad(x, (right, right, down, down))
    top = torch.randint(0, 2 * down + 1, (batch, 1)) + torch.arange(height)  # (B, H)
    left = torch.randint(0, 2 * right + 1, (batch, 1)) + torch.arange(width)  # (B, W)
    left = torch.where(torch.rand(batch, 1) < 0.5, left, left.flip(1))
    each = torch.arange(batch)[:, None, None]
    return wide[each, :, top[:, :, None], left[:, None, :]].permute(0, 3, 1, 2)  # indices first: (B, H, W, C)
