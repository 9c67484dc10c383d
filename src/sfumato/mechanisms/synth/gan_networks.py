"""The generator and the discriminators of ``synth``: the paper's (§5.2), and a small one that never mixes records.

Shapes are (B, C, H, W) with sides of 8 or more, values in [0, 1]; with one class there are no labels and no weights for
them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Shape = tuple[int, ...]
Normal = Callable[[tuple[int, ...]], Tensor]
"""Standard normal numbers of a shape."""

LATENT, _HIDDEN = 64, 256
_SLOPE = 0.2
_LARGE = 32
"""From this side on the paper's discriminator has five convolutions, below it four."""


class Generator(nn.Module):
    """Two linear layers, five deconvolutions with batch norm and ReLU, fractional max pooling, tanh: (z, y) → picture.

    The class scales and shifts the first hidden layer. A class as one more input left classes alike: z decided what was
    drawn. The deconvolutions end at a picture at least a fifth larger on each side, which the pooling takes down to
    H × W. Its regions are fixed: a sample is a function of z and y.
    """

    def __init__(self, shape: Shape, classes: int, *, latent: int = LATENT, width: int = 64) -> None:
        super().__init__()
        self.shape, self.latent = shape, latent
        high, wide = (-(-6 * side // 40) for side in shape[1:])  # ⌈1.2·side/8⌉
        self.first = nn.Sequential(nn.Linear(latent, _HIDDEN), nn.BatchNorm1d(_HIDDEN))
        self.labels = nn.Embedding(classes, 2 * _HIDDEN) if classes > 1 else None
        self.second = nn.Sequential(
            nn.Linear(_HIDDEN, width * high * wide),
            nn.Unflatten(1, (width, high, wide)),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        )
        self.deconvolutions = nn.Sequential(
            *_up(width, width, stride=1),  # (w, h, w)
            *_up(width, width, stride=1),
            *_up(width, width // 2, stride=2),  # (w/2, 2h, 2w)
            *_up(width // 2, width // 4, stride=2),  # (w/4, 4h, 4w)
        )
        self.bias = nn.Parameter(torch.zeros(shape[0], 1, 1))
        self.last = nn.ConvTranspose2d(width // 4, shape[0], 4, stride=2, padding=1, bias=False)  # (C, 8h, 8w)

    def start_at(self, brightness: float) -> None:
        """Begin with pictures of about this brightness instead of grey ones."""
        nn.init.constant_(self.bias, math.atanh(2.0 * min(max(brightness, 0.02), 0.98) - 1.0))

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        """z (B, latent), y (B,) → (B, C, H, W) in [0, 1]."""
        hidden = self.first(z)  # (B, hidden)
        if self.labels is not None:
            scale, shift = self.labels(y).chunk(2, dim=1)
            hidden = hidden * (1.0 + scale) + shift
        large = self.last(self.deconvolutions(self.second(hidden.relu()))) + self.bias  # (B, C, 8h, 8w)
        regions = large.new_full((len(large), large.shape[1], 2), 0.5)
        small = F.fractional_max_pool2d(large, 2, output_size=self.shape[1:], _random_samples=regions)
        return (small.tanh() + 1.0) / 2.0


def _up(c_in: int, c_out: int, *, stride: int) -> list[nn.Module]:
    deconvolution = nn.ConvTranspose2d(c_in, c_out, 2 + stride, stride=stride, padding=1, bias=False)
    return [deconvolution, nn.BatchNorm2d(c_out), nn.ReLU()]


class GaussianNoiseLayer(nn.Module):
    """clip(h, bound) + N(0, (σ·bound)²) for each record's feature map h, clipped in L2 as a whole.

    ``sigma`` is set when the budget is known. ``normal`` is where the noise comes from: secure, in a private run.
    """

    def __init__(self, normal: Normal, bound: float = 1.0) -> None:
        super().__init__()
        self.normal, self.bound, self.sigma = normal, bound, 0.0

    def forward(self, h: Tensor) -> Tensor:
        norms: Tensor = h.flatten(1).norm(dim=1).clamp(min=self.bound)  # (B,)
        clipped = h * (self.bound / norms).view(-1, *[1] * (h.dim() - 1))
        return clipped + self.sigma * self.bound * self.normal(tuple(h.shape))


class NoisyDiscriminator(nn.Module):
    """The paper's: three convolutions, clip and noise, then the others with batch norm and a linear classifier.

    The label is one more channel of the picture, an embedding. The convolutions before the noise have no bias, so a
    blank picture without a label has features and gradients of exactly 0.
    """

    def __init__(self, shape: Shape, classes: int, noise: GaussianNoiseLayer, *, width: int = 32) -> None:
        super().__init__()
        self.shape, self.noise = shape, noise
        self.labels = nn.Embedding(classes, shape[1] * shape[2]) if classes > 1 else None
        after = 2 if max(shape[1:]) >= _LARGE else 1
        widths = [shape[0] + (classes > 1), width, 2 * width, 2 * width, *[4 * width] * after]
        layers = [_down(a, b) for a, b in pairwise(widths)]
        self.before = nn.Sequential(*[part for layer in layers[:3] for part in (layer, nn.LeakyReLU(_SLOPE))])
        self.after = nn.Sequential(
            *[
                part
                for layer in layers[3:]
                for part in (layer, nn.BatchNorm2d(layer.out_channels), nn.LeakyReLU(_SLOPE))
            ]
        )
        high, wide = (_halved(side, len(layers)) for side in shape[1:])
        self.classifier = nn.Linear(widths[-1] * high * wide, 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """x (B, C, H, W), y (B,) → the logit of "real", (B,)."""
        if self.labels is not None:
            x = torch.cat([x, self.labels(y).view(-1, 1, *self.shape[1:])], dim=1)
        h = self.noise(self.before(x))  # (B, 2w, H/8, W/8)
        out: Tensor = self.classifier(self.after(h).flatten(1))
        return out.squeeze(1)


def _down(c_in: int, c_out: int) -> nn.Conv2d:
    return nn.Conv2d(c_in, c_out, 3, stride=2, padding=1, bias=False)


def _halved(side: int, times: int) -> int:
    for _ in range(times):
        side = (side + 1) // 2
    return side


class SmallDiscriminator(nn.Module):
    """Three convolutions and a linear head for DP-SGD: about 20,000 weights, and nothing that mixes records.

    The noise of a step grows with the number of weights. The label joins at the end, by a projection: w·h + b + e_y·h.
    """

    def __init__(self, shape: Shape, classes: int, *, width: int = 16) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(shape[0], width, 5, stride=2, padding=2),
            nn.LeakyReLU(_SLOPE),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.LeakyReLU(_SLOPE),
            nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1),
            nn.LeakyReLU(_SLOPE),
            nn.Flatten(),
        )
        high, wide = (_halved(side, 3) for side in shape[1:])
        self.head = ProjectionHead(2 * width * high * wide, classes)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """x (B, C, H, W), y (B,) → the logit of "real", (B,)."""
        out: Tensor = self.head(self.convolutions(x), y)
        return out


class ProjectionHead(nn.Module):
    """w·h + b + e_y·h: a linear classifier with a vector of each class (Miyato and Koyama 2018)."""

    def __init__(self, size: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size, 1)
        self.labels = nn.Embedding(classes, size) if classes > 1 else None
        if self.labels is not None:
            nn.init.normal_(self.labels.weight, std=size**-0.5)

    def forward(self, h: Tensor, y: Tensor) -> Tensor:
        """h (B, size), y (B,) → (B,)."""
        out: Tensor = self.linear(h).squeeze(1)
        return out if self.labels is None else out + (h * self.labels(y)).sum(dim=1)
