"""Convolutions of a map that is first doubled, computed at the map's own size."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class DoublingConv2d(nn.Conv2d):
    """Upsample (nearest, × 2) and an odd, padded convolution in one: (B, C, h, w) → (B, outputs, 2h, 2w).

    The weights are those of the large kernel.
    """

    parities: Tensor

    def __init__(self, channels: int, outputs: int, side: int) -> None:
        super().__init__(channels, outputs, side, padding=side // 2)
        self.register_buffer("parities", _parities(side, side // 2), persistent=False)

    def forward(self, maps: Tensor) -> Tensor:
        return _doubled(maps, self.weight, self.bias, self.parities, self.kernel_size[0] // 2)


class DoublingConvTranspose2d(nn.ConvTranspose2d):
    """Upsample (nearest, × 2) and a transposed convolution in steps of one, with an odd kernel, in one.

    (B, C, h, w) → (B, outputs, 2h + side − 1 − 2·padding, …). It is a convolution with the kernel turned round.
    """

    parities: Tensor

    def __init__(self, channels: int, outputs: int, side: int, padding: int) -> None:
        super().__init__(channels, outputs, side, padding=padding)
        self._reach = side - 1 - padding
        self.register_buffer("parities", _parities(side, self._reach), persistent=False)

    def forward(self, maps: Tensor, output_size: list[int] | None = None) -> Tensor:
        return _doubled(maps, self.weight.transpose(0, 1).flip(2, 3), self.bias, self.parities, self._reach)


def _parities(side: int, padding: int) -> Tensor:
    """Which pixels of the map each offset of the large kernel reads, for either parity of the pixel it computes.

    Pixel 2i + a of the doubled map reads at offset u pixel i + ⌊(a + u − padding)/2⌋ of the map.
    """
    before = (padding + 1) // 2
    parities = torch.zeros(2, (side - padding) // 2 + before + 1, side)  # [a, pixel read, offset]
    for a in range(2):
        for u in range(side):
            parities[a, (a + u - padding) // 2 + before, u] = 1.0
    return parities


def _doubled(maps: Tensor, weight: Tensor, bias: Tensor | None, parities: Tensor, padding: int) -> Tensor:
    """For each of the four parities a small kernel of sums of weights gives the same numbers from a quarter of the
    pixels."""
    taps = parities.shape[1]
    kernels = torch.einsum("atu,oiuv,bsv->oabits", parities, weight, parities)
    kernels = kernels.reshape(-1, weight.shape[1], taps, taps)
    assert bias is not None
    mixed = F.conv2d(maps, kernels, bias.repeat_interleave(4), padding=(padding + 1) // 2)
    return F.pixel_shuffle(mixed, 2)
