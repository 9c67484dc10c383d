"""Small networks around an encoder that put keys, noise and masks in from outside; shapes without the batch axis."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sfumato.mechanisms.filter.batched_mlp import BatchedMLP
from sfumato.mechanisms.filter.filter_networks import Filters


class Added(nn.Module):
    """(x, u) → encoder(x) + ``scale`` · (u − ``middle``)."""

    def __init__(self, encoder: nn.Module, scale: float, middle: float = 0.0) -> None:
        super().__init__()
        self.encoder, self.scale, self.middle = encoder, scale, middle

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        out: Tensor = self.encoder(x) + self.scale * (noise - self.middle)
        return out


class Rounded(nn.Module):
    """What another network gives, to multiples of ``step``, a power of two, or of any other one."""

    def __init__(self, network: nn.Module, step: float) -> None:
        super().__init__()
        self.network, self.step = network, step

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        return torch.round(self.network(x, noise) / self.step) * self.step


class Sampled(nn.Module):
    """(x, u) → mean + √variance · u of q(z|x)."""

    def __init__(self, posterior: nn.Module) -> None:
        super().__init__()
        self.posterior = posterior

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        mean, variance = self.posterior(x)
        out: Tensor = mean + variance.sqrt() * noise
        return out


class ToldEncoder(nn.Module):
    """(x, s, u) → a sample of q(z|x, s), the codes s one-hot."""

    def __init__(self, columns: nn.Module, posterior: nn.Module) -> None:
        super().__init__()
        self.columns, self.posterior = columns, posterior

    def forward(self, x: Tensor, private: Tensor, noise: Tensor) -> Tensor:
        mean, variance = self.posterior(torch.cat([self.columns(x), private], dim=1))
        out: Tensor = mean + variance.sqrt() * noise
        return out


class Filtered(nn.Module):
    """(x, y, u) → z̃ = z + m(μ, ε₀, y) + A_ε·ε of one user's filter, decoded if there is a ``decoder``.

    u holds the noise of z, ε and ε₀, one after the other.
    """

    def __init__(self, posterior: nn.Module, filters: Filters, latent: int, decoder: nn.Module | None) -> None:
        super().__init__()
        self.posterior, self.filters, self.latent = posterior, filters, latent
        self.decoder = decoder or nn.Identity()

    def forward(self, x: Tensor, private: Tensor, noise: Tensor) -> Tensor:
        d = self.latent
        mean, variance = self.posterior(x)
        shift, factor = self.filters(mean[None], private[None], noise[None, :, 2 * d :])
        latent = mean + variance.sqrt() * noise[:, :d] + shift[0] + noise[:, d : 2 * d] @ factor[0].T
        out: Tensor = self.decoder(latent)
        return out


class Clipped(nn.Module):
    """(x, u) → clip(z) + σ·w, decoded if there is a ``decoder``; u holds the noise of z, then w."""

    def __init__(
        self, posterior: nn.Module, latent: int, radius: float, sigma: float, decoder: nn.Module | None
    ) -> None:
        super().__init__()
        self.posterior, self.latent, self.radius, self.sigma = posterior, latent, radius, sigma
        self.decoder = decoder or nn.Identity()

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        mean, variance = self.posterior(x)
        z = mean + variance.sqrt() * noise[:, : self.latent]
        z = z * (self.radius / z.norm(dim=1, keepdim=True)).clamp(max=1.0)
        out: Tensor = self.decoder(z + self.sigma * noise[:, self.latent :])
        return out


class OneUser(nn.Module):
    """The classifier ν of a single user: (B, d) → (B, classes)."""

    def __init__(self, network: BatchedMLP) -> None:
        super().__init__()
        self.network = network

    def forward(self, z: Tensor) -> Tensor:
        out: Tensor = self.network(z[None])[0]
        return out


class SideByTask(nn.Module):
    """A network for each label, their scores side by side."""

    def __init__(self, networks: nn.ModuleList) -> None:
        super().__init__()
        self.networks = networks

    def forward(self, payload: Tensor) -> Tensor:
        return torch.cat([network(payload) for network in self.networks], dim=1)


class Turned(nn.Module):
    """(records (M, …), rows (N, d), key (N, d, d)) → key · encoder(records)[rows], (N, d, …)."""

    def __init__(self, encoder: nn.Module, row: tuple[int, ...]) -> None:
        super().__init__()
        self.encoder, self.row = encoder, row

    def forward(self, records: Tensor, rows: Tensor, key: Tensor) -> Tensor:
        features = self.encoder(records).flatten(1)[rows]  # (N, d, F)
        return torch.matmul(key, features).reshape(-1, rows.shape[1], *self.row)


class TurnedBack(nn.Module):
    """(answer (N, d, …), key (N, d, d)) → decoder(row 0 of keyᵀ · answer)."""

    def __init__(self, decoder: nn.Module, row: tuple[int, ...]) -> None:
        super().__init__()
        self.decoder, self.row = decoder, row

    def forward(self, answer: Tensor, key: Tensor) -> Tensor:
        own = torch.matmul(key[:, :, :1].transpose(1, 2), answer.flatten(2))  # (N, 1, F)
        out: Tensor = self.decoder(own.reshape(-1, *self.row))
        return out
