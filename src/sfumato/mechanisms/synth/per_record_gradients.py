"""The gradient of each record's own loss, by hand: the outer products that autograd would add up at once.

One backward pass gives δ, the gradient of the summed losses by every layer's output; a record's rows of δ belong to
its own loss only, as long as no layer mixes records. Its gradient is then δ·aᵀ for a linear layer with input a, the
same over all patches for a convolution, and δ in the row of its code for an embedding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_Seen = list[tuple[nn.Module, Tensor, Tensor]]
_Places = dict[int, Tensor]
"""Where the rows of each weight belong, (n, *shape): parts of one tensor, so that nothing is copied twice."""


def record_gradients(network: nn.Module, losses: Callable[[], Tensor]) -> Tensor:
    """∂ℓᵢ/∂θ for every record i: (n, m), θ in the order of ``network.parameters()``.

    ``losses`` runs the network once and gives ℓ (n,). Every parameter must belong to a convolution, a linear layer or
    an embedding, each used once.
    """
    seen: _Seen = []
    owners = _owners(network)
    handles = [layer.register_forward_hook(_watch(seen)) for layer in owners]
    try:
        values = losses()
    finally:
        for handle in handles:
            handle.remove()
    if sorted(id(layer) for layer, _, _ in seen) != sorted(map(id, owners)):
        raise ValueError("per-record gradients need every layer with weights to be used once.")
    deltas = torch.autograd.grad(values.sum(), [output for _, _, output in seen])
    weights = list(network.parameters())
    rows = values.new_empty(len(values), sum(weight.numel() for weight in weights))
    parts = torch.split(rows, [weight.numel() for weight in weights], dim=1)
    place = {id(weight): part.view(len(values), *weight.shape) for weight, part in zip(weights, parts, strict=True)}
    with torch.no_grad():
        for (layer, inputs, _), delta in zip(seen, deltas, strict=True):
            _GRADIENTS[type(layer)](layer, inputs, delta, place)
    return rows


def _owners(network: nn.Module) -> list[nn.Module]:
    owners = [layer for layer in network.modules() if list(layer.parameters(recurse=False))]
    for layer in owners:
        if type(layer) not in _GRADIENTS:
            raise ValueError(f"{type(layer).__name__} has no per-record gradient here: it may mix records.")
    return owners


def _watch(seen: _Seen) -> Callable[..., None]:
    def hook(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        seen.append((layer, inputs[0].detach(), output))

    return hook


def _convolution(layer: Any, inputs: Tensor, delta: Tensor, place: _Places) -> None:
    patches = F.unfold(inputs, layer.kernel_size, padding=layer.padding, stride=layer.stride)  # (n, c·k·k, L)
    delta = delta.flatten(2)  # (n, o, L)
    torch.bmm(delta, patches.transpose(1, 2), out=place[id(layer.weight)].flatten(2))  # (n, o, c·k·k)
    if layer.bias is not None:
        torch.sum(delta, dim=2, out=place[id(layer.bias)])


def _linear(layer: Any, inputs: Tensor, delta: Tensor, place: _Places) -> None:
    torch.mul(delta.unsqueeze(2), inputs.unsqueeze(1), out=place[id(layer.weight)])  # (n, o, i)
    if layer.bias is not None:
        place[id(layer.bias)].copy_(delta)


def _embedding(layer: Any, codes: Tensor, delta: Tensor, place: _Places) -> None:
    rows = place[id(layer.weight)].zero_()  # (n, codes, size)
    rows[torch.arange(len(codes)), codes] = delta


_GRADIENTS: dict[type[nn.Module], Callable[[Any, Tensor, Tensor, _Places], None]] = {
    nn.Conv2d: _convolution,
    nn.Linear: _linear,
    nn.Embedding: _embedding,
}
