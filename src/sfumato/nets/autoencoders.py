"""Deterministic autoencoders (ARS §5.1.2), whose encoder is a plain chain of layers with standardised latents.

Shapes are channels first, without the batch axis. The last layer of an encoder is a batch norm without weights.
``standardise`` sets its statistics once, so that every latent has mean 0 and standard deviation 1, and noise of size
ε is ε standard deviations.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

Shape = tuple[int, ...]

_CONVOLVED = 32
"""Images with sides of at least this many pixels get a convolutional network."""


def autoencoder(kind: str, shape: Shape, latent: int, width: int = 1) -> tuple[nn.Sequential, nn.Sequential]:
    """Return the encoder (B, *shape) → (B, latent) and the decoder (B, latent) → (B, *shape) in [0, 1].

    Small records get three fully connected layers, tables four, and images of 32 × 32 and more three convolutions and a
    linear layer. ``width`` multiplies the hidden widths.
    """
    if is_convolved(kind, shape):
        return _convolved(shape, latent, width)
    return _connected(shape, latent, (256 * width, 128 * width, *((64 * width,) if kind == "table" else ())))


def is_convolved(kind: str, shape: Shape) -> bool:
    """Return whether records are images that are large enough and whose sides can be halved three times."""
    return kind == "image" and min(shape[1:]) >= _CONVOLVED and not any(side % 8 for side in shape[1:])


def substitute_decoder(kind: str, shape: Shape, latent: int, width: int = 1) -> nn.Sequential:
    """Return a decoder of the same architecture (SDec), which anyone who can encode may train (Eq. 8)."""
    return autoencoder(kind, shape, latent, width)[1]


def unstandardised(encoder: nn.Sequential) -> nn.Sequential:
    """Return the encoder without its last layer, sharing its weights."""
    return nn.Sequential(*list(encoder)[:-1])


def standardise(encoder: nn.Sequential, raw: Tensor) -> None:
    """Set the statistics of the encoder's last layer from latents (N, h) of ``unstandardised``."""
    norm = encoder[-1]
    assert isinstance(norm, nn.BatchNorm1d)
    assert norm.running_mean is not None and norm.running_var is not None
    norm.running_mean.copy_(raw.mean(0))
    variance = raw.var(0, unbiased=False) - norm.eps  # the layer adds eps again
    norm.running_var.copy_(variance.clamp_min(1e-6))


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
    """Return fully connected layers with ReLU between them."""
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return layers[:-1]


def _convolved(shape: Shape, latent: int, times: int) -> tuple[nn.Sequential, nn.Sequential]:
    channels, height, width = shape
    h, w = height // 8, width // 8
    few, some, many = 32 * times, 48 * times, 64 * times
    encoder = nn.Sequential(
        nn.Conv2d(channels, few, 4, stride=2, padding=1),  # H/2 × W/2
        nn.ReLU(),
        nn.Conv2d(few, some, 4, stride=2, padding=1),  # H/4 × W/4
        nn.ReLU(),
        nn.Conv2d(some, many, 4, stride=2, padding=1),  # H/8 × W/8
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(many * h * w, latent),
        nn.BatchNorm1d(latent, affine=False),
    )
    decoder = nn.Sequential(
        nn.Linear(latent, many * h * w),
        nn.ReLU(),
        nn.Unflatten(1, (many, h, w)),
        nn.ConvTranspose2d(many, some, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(some, few, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(few, channels, 4, stride=2, padding=1),
        nn.Sigmoid(),
    )
    return encoder, decoder
