"""A small U-Net (Ronneberger et al. 2015) that decodes feature maps nearly as large as the record."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.nets.residual_decoder import Residual, Shape, flat_decoder

_CHANNELS = 8
"""With fewer channels, a payload is not taken for the feature map of a signal."""


class _Spread(nn.Module):
    """A sub-pixel convolution: every position of the map becomes a patch of the record.

    A convolution at the record's size would take half of the network's time.
    """

    def __init__(self, channels: int, outputs: int, sides: Shape, record: Shape) -> None:
        super().__init__()
        self.patch = max(-(-whole // side) for side, whole in zip(sides, record, strict=True))
        conv = nn.Conv1d if len(sides) == 1 else nn.Conv2d
        self.mix = conv(channels, outputs * self.patch ** len(sides), 3, padding=1)
        exact = all(side * self.patch == whole for side, whole in zip(sides, record, strict=True))
        self.fit = nn.Identity() if exact else nn.Upsample(size=record, mode="nearest")

    def forward(self, maps: Tensor) -> Tensor:  # (B, C, h, w) → (B, outputs, H, W)
        patches = self.mix(maps)
        if patches.dim() == 4:
            return self.fit(F.pixel_shuffle(patches, self.patch))  # type: ignore[no-any-return]
        return self.fit(patches.unflatten(1, (-1, self.patch)).transpose(2, 3).flatten(2))  # type: ignore[no-any-return]


class _UNet(nn.Module):
    """Convolution at the map's size, residual blocks at half of it, a skip connection, then the record's size."""

    def __init__(self, channels: int, sides: Shape, record: Shape, width: int, outputs: int) -> None:
        super().__init__()
        dims = len(sides)
        conv, norm = (nn.Conv1d, nn.BatchNorm1d) if dims == 1 else (nn.Conv2d, nn.BatchNorm2d)
        few = max(width // 2, outputs * record[0])
        self.stem = nn.Sequential(norm(channels), conv(channels, width, 3, padding=1, bias=False))  # (B, W, h, w)
        self.down = nn.Sequential(
            norm(width),
            nn.ReLU(),
            conv(width, width, 3, stride=2, padding=1, bias=False),  # (B, W, h/2, w/2)
            Residual(dims, width),
            Residual(dims, width),
            nn.Upsample(size=sides, mode="nearest"),
        )
        self.up = nn.Sequential(
            norm(width),
            nn.ReLU(),
            conv(width, few, 3, padding=1, bias=False),
            norm(few),
            nn.ReLU(),
            _Spread(few, outputs * record[0], sides, record[1:]),
            nn.Sigmoid(),
        )

    def forward(self, maps: Tensor) -> Tensor:  # (B, C, h, w) → (B, outputs·c, H, W)
        if maps.dim() == 4:
            maps = maps.contiguous(memory_format=torch.channels_last)  # once, not in each layer
        fine = self.stem(maps)
        return self.up(fine + self.down(fine))  # type: ignore[no-any-return]


def map_decoder(payload: Shape, record: Shape, width: int = 32, *, outputs: int = 1) -> nn.Module:
    """Return a decoder payload → record in [0, 1]; with several ``outputs``, → (B, outputs, *record).

    A wide map is decoded by a U-Net, as in the paper on rotated features (§4.1; narrower and shallower here, for a
    CPU), with the d·C channels of a rotated map merged. For other payloads every number reaches every output.
    """
    several = [nn.Unflatten(1, (outputs, record[0]))] if outputs > 1 else []
    if not is_wide_map(payload, record):
        return nn.Sequential(flat_decoder(payload, (outputs * record[0], *record[1:]), width), *several)
    dims = len(record) - 1
    merge = [nn.Flatten(1, 2)] if len(payload) == len(record) + 1 else []
    channels = torch.Size(payload[:-dims]).numel()
    return nn.Sequential(*merge, _UNet(channels, payload[-dims:], record, width, outputs), *several)


def is_wide_map(payload: Shape, record: Shape) -> bool:
    """Return whether this is a map (C, …) or rotated map (d, C, …) with a side above a quarter of the record's.

    A linear layer from such a map to the record would be huge. A vector in two or three rows is not a signal map.
    """
    dims = len(record) - 1
    rotated = len(payload) == dims + 2
    if dims == 0 or not (rotated or len(payload) == dims + 1) or (dims == 1 and not rotated and payload[0] < _CHANNELS):
        return False
    return any(4 * side > whole for side, whole in zip(payload[-dims:], record[1:], strict=True))
