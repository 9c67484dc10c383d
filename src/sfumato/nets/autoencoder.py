"""Deterministic autoencoders (ARS §5.1.2): an encoder that is a plain chain ending in standardised latents.

Shapes are channels first and without the batch axis. The last layer of an encoder is a batch norm without weights:
``standardise`` sets its statistics once, so that every latent has mean 0 and standard deviation 1, and noise of size
ε is ε standard deviations.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

Shape = tuple[int, ...]

_CONVOLVED = 32
"""From this side on a picture is convolved."""


def autoencoder(kind: str, shape: Shape, latent: int) -> tuple[nn.Sequential, nn.Sequential]:
    """Encoder (B, *shape) → (B, latent) and decoder (B, latent) → (B, *shape) in [0, 1].

    Three fully connected layers for small records, four for tables, four convolutional ones for pictures of 32 × 32
    and more.
    """
    if kind == "image" and min(shape[1:]) >= _CONVOLVED and not any(side % 8 for side in shape[1:]):
        return _convolved(shape, latent)
    return _connected(shape, latent, (256, 128, 64) if kind == "table" else (256, 128))


def substitute_decoder(kind: str, shape: Shape, latent: int) -> nn.Sequential:
    """SDec: a decoder of the same make, to be trained by whoever can encode (Eq. 8)."""
    return autoencoder(kind, shape, latent)[1]


def standardise(encoder: nn.Sequential, raw: Tensor) -> None:
    """Set the statistics of the encoder's last layer from latents (N, h) taken before it."""
    norm = encoder[-1]
    assert isinstance(norm, nn.BatchNorm1d)
    assert norm.running_mean is not None and norm.running_var is not None
    norm.running_mean.copy_(raw.mean(0))
    norm.running_var.copy_(raw.var(0, unbiased=False).clamp_min(1e-6))


def _connected(shape: Shape, latent: int, hidden: tuple[int, ...]) -> tuple[nn.Sequential, nn.Sequential]:
    size = torch.Size(shape).numel()
    widths = (size, *hidden, latent)
    flat: list[nn.Module] = [nn.Flatten()] if len(shape) > 1 else []
    back: list[nn.Module] = [nn.Unflatten(1, shape)] if len(shape) > 1 else []
    return (
        nn.Sequential(*flat, *relu_chain(*widths), nn.BatchNorm1d(latent, affine=False)),
        nn.Sequential(*relu_chain(*reversed(widths)), nn.Sigmoid(), *back),
    )


def relu_chain(*widths: int) -> list[nn.Module]:
    """FC → ReLU → … → FC."""
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return layers[:-1]


def _convolved(shape: Shape, latent: int) -> tuple[nn.Sequential, nn.Sequential]:
    channels, height, width = shape
    h, w = height // 8, width // 8
    encoder = nn.Sequential(
        nn.Conv2d(channels, 32, 4, stride=2, padding=1),  # (32, H/2, W/2)
        nn.ReLU(),
        nn.Conv2d(32, 48, 4, stride=2, padding=1),  # (48, H/4, W/4)
        nn.ReLU(),
        nn.Conv2d(48, 64, 4, stride=2, padding=1),  # (64, H/8, W/8)
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64 * h * w, latent),
        nn.BatchNorm1d(latent, affine=False),
    )
    decoder = nn.Sequential(
        nn.Linear(latent, 64 * h * w),
        nn.ReLU(),
        nn.Unflatten(1, (64, h, w)),
        nn.ConvTranspose2d(64, 48, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(48, 32, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(32, channels, 4, stride=2, padding=1),
        nn.Sigmoid(),
    )
    return encoder, decoder
