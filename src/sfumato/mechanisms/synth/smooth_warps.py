"""Pictures under smooth random bends: what hands and cameras do to a shape, and Gaussians in pixels cannot."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

BEND = 2.0 / 28.0
"""The standard deviation of a knot's shift, in sides of the picture."""
_KNOTS = 5


def warped(pictures: Tensor, generator: torch.Generator, bend: float) -> Tensor:
    """(n, C, H, W), each bent by shifts drawn at 5 × 5 knots and interpolated between them. No record is needed."""
    n, _, height, width = pictures.shape
    still = torch.eye(2, 3).expand(n, 2, 3)
    grid = F.affine_grid(still, [n, 1, height, width], align_corners=False)  # (n, H, W, 2), sides go from −1 to 1
    shifts = 2.0 * bend * torch.randn(n, 2, _KNOTS, _KNOTS, generator=generator)
    between = F.interpolate(shifts, size=(height, width), mode="bicubic", align_corners=True)
    moved = grid + between.permute(0, 2, 3, 1)
    return F.grid_sample(pictures, moved, align_corners=False, padding_mode="border")
