"""A decoder that reverses the encoder layer by layer (RAN §2.3)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

Shape = tuple[int, ...]

_DECONV: dict[type[nn.Module], Any] = {nn.Conv1d: nn.ConvTranspose1d, nn.Conv2d: nn.ConvTranspose2d}
_POOLS = (nn.MaxPool1d, nn.MaxPool2d, nn.AvgPool1d, nn.AvgPool2d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)
_POINTWISE = (nn.ReLU, nn.LeakyReLU, nn.ELU, nn.GELU, nn.Tanh, nn.Sigmoid, nn.SiLU)
_SKIPPED = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Identity)


class NotAChain(ValueError):
    """The encoder cannot be mirrored; the message lists every reason."""


def mirror(encoder: nn.Module, shape: Shape) -> nn.Sequential:
    """Return the mirrored decoder of a chain of layers, ending in a sigmoid because records lie in [0, 1].

    Each layer is reversed: convolution → transposed convolution, pooling → nearest-neighbour upsampling to the original
    size (pooling indices are not part of a release), batch norm → batch norm, linear → linear, flatten → unflatten.
    """
    steps = _trace(encoder, shape)
    problems = [
        f"'{name}' ({type(layer).__name__}) cannot be reversed"
        for name, layer, _, _ in steps
        if not isinstance(layer, (*_DECONV, *_POOLS, *_NORMS, *_POINTWISE, *_SKIPPED, nn.Linear, nn.Flatten))
    ]
    if problems:
        raise NotAChain("; ".join(problems) + "; only a chain of layers can be mirrored.")
    layers: list[nn.Module] = []
    for _, layer, before, after in reversed(steps):
        layers += _reverse(layer, before, after)
    return nn.Sequential(*layers, nn.Sigmoid())


def _trace(encoder: nn.Module, shape: Shape) -> list[tuple[str, nn.Module, Shape, Shape]]:
    """Return the leaf layers in execution order with their input and output shapes; raise unless they form a chain."""
    steps: list[tuple[str, nn.Module, Shape, Shape]] = []
    last: list[torch.Tensor] = []
    breaks: list[str] = []

    def watch(name: str) -> Any:
        def hook(layer: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
            if last and inputs[0] is not last[0]:
                breaks.append(f"the input of '{name}' is not the output of the layer before it")
            last[:] = [output]
            steps.append((name, layer, tuple(inputs[0].shape[1:]), tuple(output.shape[1:])))

        return hook

    leaves = [(name, m) for name, m in encoder.named_modules() if not list(m.children())]
    handles = [m.register_forward_hook(watch(name)) for name, m in leaves]
    was_training = encoder.training
    try:
        encoder.eval()
        with torch.no_grad():
            output = encoder(torch.zeros(1, *shape))
    finally:
        encoder.train(was_training)
        for handle in handles:
            handle.remove()
    if not steps:
        raise NotAChain("the encoder has no layers; only a chain of layers can be mirrored.")
    if output is not last[0]:
        breaks.append("the encoder changes the output of its last layer")
    if breaks:
        raise NotAChain("; ".join(breaks) + "; only a chain of layers can be mirrored.")
    return steps


def _reverse(layer: nn.Module, before: Shape, after: Shape) -> list[nn.Module]:
    if isinstance(layer, (nn.Conv1d, nn.Conv2d)):
        conv: Any = layer
        kernel, stride, dilation = conv.kernel_size, conv.stride, conv.dilation
        padding = tuple(
            d * (k - 1) // 2 if conv.padding == "same" else 0 if isinstance(conv.padding, str) else conv.padding[i]
            for i, (k, d) in enumerate(zip(kernel, dilation, strict=True))
        )
        extra = tuple(
            want - ((got - 1) * s - 2 * p + d * (k - 1) + 1)
            for want, got, s, p, d, k in zip(before[1:], after[1:], stride, padding, dilation, kernel, strict=True)
        )
        deconv = _DECONV[type(layer)]
        return [
            deconv(
                conv.out_channels,
                conv.in_channels,
                kernel,
                stride=stride,
                padding=padding,
                output_padding=extra,
                dilation=dilation,
                groups=conv.groups,
            )
        ]
    if isinstance(layer, _POOLS):
        return [nn.Upsample(size=before[1:], mode="nearest")]
    if isinstance(layer, nn.BatchNorm1d):
        return [nn.BatchNorm1d(layer.num_features)]
    if isinstance(layer, nn.BatchNorm2d):
        return [nn.BatchNorm2d(layer.num_features)]
    if isinstance(layer, nn.Linear):
        return [nn.Linear(layer.out_features, layer.in_features)]
    if isinstance(layer, nn.Flatten):
        return [nn.Unflatten(1, before)]
    if isinstance(layer, _SKIPPED):
        return []
    return [type(layer)()]
