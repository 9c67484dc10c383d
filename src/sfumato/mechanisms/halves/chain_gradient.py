"""Gradients of plain chains by their input, written out, because a program cannot call autograd."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.core.errors import UsageError

_KNOWN = (nn.Linear, nn.ReLU, nn.Sigmoid, nn.Flatten, nn.Unflatten, nn.ConvTranspose2d, nn.BatchNorm1d)


class ChainGradient(nn.Module):
    """Forward and backward through linear layers, transposed convolutions, batch norm, ReLU, sigmoid and changes of
    shape."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        layers = _layers(network)
        for layer in layers:
            if not isinstance(layer, _KNOWN):
                raise UsageError(
                    f"the noise follows the gradient of a network with {type(layer).__name__}, which cannot be "
                    "exported: use variant=hardened."
                )
        self.layers = nn.ModuleList(layers)

    def values(self, z: Tensor) -> list[Tensor]:
        """The output of every layer."""
        found = []
        for layer in self.layers:
            z = layer(z)
            found.append(z)
        return found

    def back(self, z: Tensor, values: Sequence[Tensor], gradient: Tensor) -> Tensor:
        """The gradient by the input z, from the one by the last output."""
        before = [z, *values[:-1]]
        for layer, given, made in zip(reversed(self.layers), reversed(before), reversed(values), strict=True):
            if isinstance(layer, nn.Linear):
                gradient = torch.matmul(gradient, layer.weight)
            elif isinstance(layer, nn.ReLU):
                gradient = gradient * (made > 0).to(gradient.dtype)
            elif isinstance(layer, nn.Sigmoid):
                gradient = gradient * made * (1.0 - made)
            elif isinstance(layer, nn.BatchNorm1d):
                gradient = gradient * _slope(layer)
            elif isinstance(layer, nn.ConvTranspose2d):
                gradient = F.conv2d(gradient, layer.weight, stride=layer.stride, padding=_pair(layer.padding))
            else:
                gradient = gradient.reshape(-1, *given.shape[1:])
        return gradient


class Perturbed(nn.Module):
    """(x, mask) → ẑ = z + λ₀δ_R + Σ λ_k δ_{A_k} (Eq. 15): n steps against the decoder, one towards each class."""

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        attributes: Sequence[tuple[nn.Module, int]],
        weights: Sequence[float],
        epsilon: float,
        n: int,
    ) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, ChainGradient(decoder)
        self.attributes = nn.ModuleList(ChainGradient(network) for network, _ in attributes)
        self.wanted = [wanted for _, wanted in attributes]
        self.weights, self.epsilon, self.n = tuple(weights), epsilon, n

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        z = self.encoder(x)
        moved, step = z, mask * (self.epsilon / self.n)
        if self.weights[0] > 0.0:
            for _ in range(self.n):
                values = self.decoder.values(moved)
                error = values[-1] - x.reshape(-1, *values[-1].shape[1:])
                moved = moved + step * torch.sign(self.decoder.back(moved, values, error))
        delta = self.weights[0] * (moved - z)
        for lam_k, network, wanted in zip(self.weights[1:], self.attributes, self.wanted, strict=True):
            assert isinstance(network, ChainGradient)
            values = network.values(z)
            goal = F.one_hot(torch.tensor(wanted), values[-1].shape[1]).to(z.dtype)
            gradient = network.back(z, values, values[-1].softmax(1) - goal)
            delta = delta - lam_k * self.epsilon * torch.sign(gradient)
        out: Tensor = z + delta
        return out


def _layers(network: nn.Module) -> list[nn.Module]:
    """The layers of nested chains."""
    if isinstance(network, nn.Sequential):
        return [layer for part in network for layer in _layers(part)]
    return [] if isinstance(network, nn.Identity) else [network]


def _slope(norm: nn.BatchNorm1d) -> Tensor:
    """What a fitted batch norm multiplies by."""
    assert norm.running_var is not None
    slope = (norm.running_var + norm.eps).rsqrt()
    return slope if norm.weight is None else slope * norm.weight


def _pair(padding: str | tuple[int, ...]) -> tuple[int, ...]:
    assert not isinstance(padding, str)  # transposed convolutions have numbers alone
    return padding
