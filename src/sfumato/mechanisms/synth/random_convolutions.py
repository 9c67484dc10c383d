"""Features that nobody trained: random convolutions with orthogonal filters, drawn from a seed."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.mechanisms.synth.cosine_transform import cosine_basis

Shape = tuple[int, ...]


def orthogonal_filters(c_out: int, c_in: int, kernel: int, generator: torch.Generator) -> Tensor:
    """Random filters (o, i, k, k) of norm 1, orthogonal to each other as far as there is room."""
    size = c_in * kernel * kernel
    blocks = [torch.linalg.qr(torch.randn(size, size, generator=generator))[0] for _ in range(-(-c_out // size))]
    return torch.cat(blocks)[:c_out].view(c_out, c_in, kernel, kernel)


def pixel_scale(shape: Shape) -> float:
    """Brings a picture with an eighth of its light on to norm 1; clipping starts about there."""
    return math.sqrt(8.0 / torch.Size(shape).numel())


class FixedFront(nn.Module):
    """Two strided convolutions with ReLU, clipped to L2 norm 1 as a whole: (B, C, H, W) → (B, size).

    Weights are buffers: no optimiser finds them. Every record by itself.
    """

    first: Tensor
    second: Tensor

    def __init__(self, shape: Shape, seed: int, *, width: int = 16) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.register_buffer("first", orthogonal_filters(width, shape[0], 5, generator))
        self.register_buffer("second", orthogonal_filters(2 * width, width, 3, generator))
        self.scale = pixel_scale(shape)
        self.size = 2 * width * (-(-shape[1] // 4)) * (-(-shape[2] // 4))

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(F.conv2d(x * self.scale, self.first, stride=2, padding=2))  # (B, w, H/2, W/2)
        h = F.relu(F.conv2d(h, self.second, stride=2, padding=1)).flatten(1)  # (B, size)
        norms: Tensor = h.norm(dim=1, keepdim=True)
        return h / norms.clamp(min=1.0)


class FixedFeatures(nn.Module):
    """What a picture's mean embedding is the mean of: (B, C, H, W) → (B, size), of L2 norm ≤ 1, each by itself.

    Five groups, each of norm ≤ 1/√5: the pixels; three strided random convolutions with ReLU, one on the other, whose
    maps are divided by their norm; and all products of two low frequencies of the cosine transform, again divided by
    their norm. Means of the pixels and maps say where strokes are, means of products how they go together.
    """

    basis: Tensor
    pairs: Tensor

    def __init__(self, shape: Shape, seed: int, *, widths: tuple[int, ...] = (32, 64, 64), keep: int = 8) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        sizes = [shape[0], *widths]
        for number, width in enumerate(widths):
            filters = orthogonal_filters(width, sizes[number], 3 if number else 5, generator)
            if number == 0:  # an even patch says nothing that the pixels do not
                filters = F.normalize((filters - filters.mean(dim=(1, 2, 3), keepdim=True)).flatten(1)).view_as(filters)
            self.register_buffer(f"filters{number}", filters)
        self.depth = len(widths)
        self.register_buffer("basis", cosine_basis(shape, keep).float())
        self.register_buffer("pairs", torch.triu_indices(self.basis.shape[1], self.basis.shape[1]))
        self.scale, self.pixels = pixel_scale(shape), torch.Size(shape).numel()
        self.size = self(torch.zeros(1, *shape)).shape[1]

    def forward(self, x: Tensor) -> Tensor:
        pixels = x.flatten(1) * self.scale
        groups = [pixels / _norms(pixels).clamp(min=1.0)]
        h = x
        for number in range(self.depth):
            filters: Tensor = getattr(self, f"filters{number}")
            h = F.relu(F.conv2d(h, filters, stride=2, padding=filters.shape[-1] // 2))  # (B, w, H/2, W/2)
            groups.append(_unit(h.flatten(1)))
        low = pixels @ self.basis  # (B, m)
        twice = torch.where(self.pairs[0] == self.pairs[1], 1.0, math.sqrt(2.0))  # the norm of the whole square
        groups.append(_unit(low[:, self.pairs[0]] * low[:, self.pairs[1]] * twice))
        return torch.cat(groups, dim=1) / math.sqrt(len(groups))

    def brightness(self, mean: Tensor) -> float:
        """The mean of all pixels, read from mean features (k, size); clipped pictures count for less."""
        return float(mean[:, : self.pixels].mean()) * math.sqrt(self.depth + 2) / self.scale


def _norms(rows: Tensor) -> Tensor:
    norms: Tensor = rows.norm(dim=1, keepdim=True)
    return norms


def _unit(rows: Tensor) -> Tensor:
    return rows / _norms(rows).clamp(min=1e-6)
