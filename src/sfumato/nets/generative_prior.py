"""A small variational autoencoder whose decoder says what records are like: z ~ N(0, I) → record in [0, 1]."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.nets.autoencoders import autoencoder, unstandardised
from sfumato.nets.training_loop import adam, channels_last, minibatches, take_step

_BATCH, _RATE = 128, 2e-3
_VARIANCE = 0.02
"""Of a record's numbers about what the decoder says: the weight of the error against the divergence."""


def fit_prior(kind: str, x: Tensor, latent: int, steps: int, seed: int) -> nn.Module:
    """The decoder (B, latent) → (B, *shape), learnt from records x in about so many steps.

    Minimises |x − D(z)|²/2σ² + KL(N(μ, s²) ‖ N(0, I)) with z ~ N(μ, s²), where μ and log s² are what the encoder says.
    """
    torch.manual_seed(seed)
    shape = tuple(x.shape[1:])
    encoder, decoder = unstandardised(autoencoder(kind, shape, 2 * latent)[0]), autoencoder(kind, shape, latent)[1]
    for network in (encoder, decoder):
        channels_last(network)
    optimiser = adam([*encoder.parameters(), *decoder.parameters()], _RATE)
    for epoch in range(math.ceil(steps / math.ceil(len(x) / _BATCH))):
        for rows in minibatches(len(x), _BATCH, seed + epoch):
            mean, log_variance = encoder(x[rows]).chunk(2, dim=1)  # (B, latent) each
            z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
            error = F.mse_loss(decoder(z), x[rows], reduction="sum") / (2.0 * _VARIANCE)
            divergence = 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance).sum()
            take_step(optimiser, (error + divergence) / len(rows))
    return decoder.eval().requires_grad_(False)
