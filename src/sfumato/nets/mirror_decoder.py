"""A decoder that reverses the encoder layer by layer (RAN §2.3)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from sfumato.nets.doubling_convolution import DoublingConvTranspose2d

Shape = tuple[int, ...]

_DECONV: dict[type[nn.Module], Any] = {nn.Conv1d: nn.ConvTranspose1d, nn.Conv2d: nn.ConvTranspose2d}
_POOLS = (nn.MaxPool1d, nn.MaxPool2d, nn.AvgPool1d, nn.AvgPool2d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)
_POINTWISE = (nn.ReLU, nn.LeakyReLU, nn.ELU, nn.GELU, nn.Tanh, nn.Sigmoid, nn.SiLU)
_SKIPPED = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Identity)


class _Enlarged(nn.Upsample):
    """Nearest-neighbour upsampling of maps with these sides; ``doubles`` says whether it is × 2 on both."""

    def __init__(self, to: Shape, sides: Shape) -> None:
        super().__init__(size=to, mode="nearest")
        self.doubles = len(to) == 2 and to == tuple(2 * side for side in sides)


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
    return nn.Sequential(*_doubling(layers), nn.Sigmoid())


def _doubling(layers: list[nn.Module]) -> list[nn.Module]:
    """The same chain, in which maps that are doubled before a transposed convolution are not: norms and pointwise
    layers in between give the same on a quarter of the pixels. Weights keep their names."""
    found, doubled = list(layers), None
    for place, layer in enumerate(layers):
        if isinstance(layer, _Enlarged):
            doubled = place if layer.doubles else None
        elif doubled is not None and isinstance(layer, nn.ConvTranspose2d):
            side, across = layer.kernel_size
            padding, other = (int(one) for one in layer.padding)
            plain = {layer.stride, layer.dilation} == {(1, 1)} and layer.groups == 1 and layer.bias is not None
            if plain and not any(layer.output_padding) and side == across and padding == other and side % 2 == 1:
                found[doubled] = nn.Identity()
                found[place] = _taken_over(layer)
            doubled = None
        elif not isinstance(layer, (nn.BatchNorm2d, *_POINTWISE)):
            doubled = None
    return found


def _taken_over(layer: nn.ConvTranspose2d) -> DoublingConvTranspose2d:
    """With the weights that were drawn, so that no later layer draws others."""
    with torch.random.fork_rng(devices=()):
        new = DoublingConvTranspose2d(
            layer.in_channels, layer.out_channels, layer.kernel_size[0], int(layer.padding[0])
        )
    new.load_state_dict(layer.state_dict())
    return new


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
        return [_Enlarged(before[1:], after[1:])]
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
