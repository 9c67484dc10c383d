"""The gradient of a decoder's squared error by its input, without the loss and without gradients of the weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

InputGradient = Callable[[Tensor, Tensor], Tensor]
"""Points z (B, h) and records x (B, *shape), at most so many as were said → ∇_z ‖x − decoder(z)‖² / 2, (B, h)."""


def error_gradient(decoder: nn.Module, rows: int) -> InputGradient:
    """For batches of up to ``rows``; the decoder's weights must ask for no gradient.

    A chain of linear layers, ReLU and sigmoid is worked out by hand, in buffers that every call uses again; the result
    is valid until the next call. Any other decoder takes autograd.
    """
    layers = list(decoder) if isinstance(decoder, nn.Sequential) else []
    while layers and isinstance(layers[-1], nn.Unflatten):  # the error does not care for the shape
        layers.pop()
    if layers and all(_follows(a, b) for a, b in zip([None, *layers], layers, strict=False)):
        return _Chain(layers, rows)
    return lambda z, x: _by_autograd(decoder, z, x)


def _follows(before: nn.Module | None, layer: nn.Module) -> bool:
    """A linear layer anywhere; an activation after one only, whose values it overwrites."""
    return isinstance(layer, nn.Linear) or (isinstance(layer, nn.ReLU | nn.Sigmoid) and isinstance(before, nn.Linear))


def _by_autograd(decoder: nn.Module, z: Tensor, x: Tensor) -> Tensor:
    points = z.detach().requires_grad_(True)
    error = F.mse_loss(decoder(points), x, reduction="sum")
    return torch.autograd.grad(error, points)[0].mul_(0.5)


class _Chain:
    """Forward and backward through linear layers, ReLU and sigmoid; activations overwrite what they are made of."""

    def __init__(self, layers: Sequence[nn.Module], rows: int) -> None:
        self._layers = layers
        linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
        self._values = [torch.empty(rows, layer.out_features) for layer in linear]
        self._gradients = [torch.empty(rows, layer.in_features) for layer in linear]
        self._error = torch.empty(rows, linear[-1].out_features)

    def __call__(self, z: Tensor, x: Tensor) -> Tensor:
        count, value = len(z), z
        outputs, buffers = [], iter(self._values)
        for layer in self._layers:
            if isinstance(layer, nn.Linear):
                value = _linear(layer, value, next(buffers)[:count])
            else:
                value = value.relu_() if isinstance(layer, nn.ReLU) else value.sigmoid_()
            outputs.append(value)
        gradient = torch.sub(value, x.flatten(1), out=self._error[:count])
        buffers = iter(reversed(self._gradients))
        for layer, output in zip(reversed(self._layers), reversed(outputs), strict=True):
            if isinstance(layer, nn.Linear):
                gradient = torch.mm(gradient, layer.weight, out=next(buffers)[:count])
            elif isinstance(layer, nn.ReLU):
                gradient = gradient.mul_(output.sign_())  # 1 where the value is above 0
            else:
                gradient = gradient.mul_(output.addcmul_(output, output, value=-1.0))  # y (1 − y)
        return gradient


def _linear(layer: nn.Linear, value: Tensor, out: Tensor) -> Tensor:
    if layer.bias is None:
        return torch.mm(value, layer.weight.T, out=out)
    return torch.addmm(layer.bias, value, layer.weight.T, out=out)
