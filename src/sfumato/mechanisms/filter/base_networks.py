"""What a filter stands on as networks that can be shipped: record → mean and variance, and latent → record."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from sfumato.core.errors import UsageError
from sfumato.mechanisms.filter.binary_columns import BinaryColumns
from sfumato.mechanisms.filter.vae_networks import posterior


@runtime_checkable
class ShippableBase(Protocol):
    """A base whose computations are networks."""

    def posterior_network(self) -> nn.Module:
        """Records (B, *shape) → mean and variance (B, d) each."""

    def decoder_network(self) -> nn.Module | None:
        """Latents (B, d) → records (B, *shape); None where there is no way back."""


class Spread(nn.Module):
    """An encoder of (mean, log variance) as (mean, variance); of a mean alone with one ``variance`` for all."""

    def __init__(self, encoder: nn.Module, variance: float | None = None) -> None:
        super().__init__()
        self.encoder, self.variance = encoder, variance

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        encoded = self.encoder(x)
        if self.variance is None:
            return posterior(encoded)
        return encoded, torch.full_like(encoded, self.variance)


class Decoded(nn.Module):
    """Logits of a decoder as pixels, or as the likeliest row of a table."""

    def __init__(self, decoder: nn.Module, columns: BinaryColumns | None) -> None:
        super().__init__()
        self.decoder, self.columns = decoder, columns

    def forward(self, z: Tensor) -> Tensor:
        logits = self.decoder(z)
        return torch.sigmoid(logits) if self.columns is None else self.columns.records(logits)


def networks_of(base: object, output: str) -> tuple[nn.Module, nn.Module | None]:
    """The posterior of a base, and its decoder if the output is data."""
    if not isinstance(base, ShippableBase):
        raise UsageError(
            f"a base of your own ({type(base).__name__}) is no network that could be exported: give it "
            "posterior_network() and decoder_network()."
        )
    return base.posterior_network(), base.decoder_network() if output == "data" else None
