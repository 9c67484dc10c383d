"""A convolution of a map that is first doubled, computed at the map's own size."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class DoublingConv2d(nn.Conv2d):
    """Upsample (nearest, × 2) and an odd, padded convolution in one: (B, C, h, w) → (B, outputs, 2h, 2w).

    Pixel 2i + a of the doubled map is pixel i of the map, so offset u reads pixel i + ⌊(a + u)/2⌋: for each of the four
    parities a small kernel of sums of weights gives the same numbers from a quarter of the pixels. The weights are
    those of the large kernel.
    """

    parities: Tensor

    def __init__(self, channels: int, outputs: int, side: int) -> None:
        super().__init__(channels, outputs, side, padding=side // 2)
        reach = side // 2
        near = (reach + 1) // 2
        parities = torch.zeros(2, 2 * near + 1, side)  # [a, pixel read, offset]
        for a in range(2):
            for u in range(-reach, reach + 1):
                parities[a, (a + u) // 2 + near, u + reach] = 1.0
        self.register_buffer("parities", parities, persistent=False)

    def forward(self, maps: Tensor) -> Tensor:
        side = self.parities.shape[1]
        kernels = torch.einsum("atu,oiuv,bsv->oabits", self.parities, self.weight, self.parities)
        kernels = kernels.reshape(-1, self.in_channels, side, side)
        assert self.bias is not None
        mixed = F.conv2d(maps, kernels, self.bias.repeat_interleave(4), padding=side // 2)
        return F.pixel_shuffle(mixed, 2)
