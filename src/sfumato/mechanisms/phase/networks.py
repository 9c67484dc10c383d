"""Ordinary networks with named stages, and where the paper cuts them into device, cloud and device (§4.1).

Shapes are channels first and without the batch axis: (C, H, W), (C, L) or (D,).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Blueprint:
    """How to build a network, the last module of the device's head and the first of its tail."""

    build: Callable[[Shape, int], nn.Module]
    encrypt_to: str
    decrypt_from: str


@dataclass(frozen=True)
class _Kit:
    """The layers for signals (1) or pictures (2)."""

    dims: int

    def conv(self, c_in: int, c_out: int, kernel: int, stride: int = 1, bias: bool = True) -> nn.Module:
        """A convolution that keeps the side, or divides it by ``stride``."""
        layer = nn.Conv1d if self.dims == 1 else nn.Conv2d
        return layer(c_in, c_out, kernel, stride=stride, padding=kernel // 2, bias=bias)

    def norm(self, channels: int) -> nn.Module:
        return nn.BatchNorm1d(channels) if self.dims == 1 else nn.BatchNorm2d(channels)

    def pool(self) -> nn.Module:
        return nn.MaxPool1d(2) if self.dims == 1 else nn.MaxPool2d(2)

    def average(self) -> nn.Module:
        return nn.AdaptiveAvgPool1d(1) if self.dims == 1 else nn.AdaptiveAvgPool2d(1)


def _kit(name: str, shape: Shape, smallest: int) -> _Kit:
    """The layers for ``shape``, or a refusal."""
    if len(shape) not in (2, 3):
        raise ValueError(f"{name} takes signals (C, L) or pictures (C, H, W), not a record of shape {shape}: use mlp")
    if min(shape[1:]) < smallest:
        raise ValueError(f"{name} needs sides of at least {smallest}, not {shape}: use a shallower network or mlp")
    return _Kit(len(shape) - 1)


def _flat(channels: int, shape: Shape, halvings: int) -> int:
    """Numbers left of a record after ``halvings`` pools by two."""
    return channels * torch.Size(side >> halvings for side in shape[1:]).numel()


def lenet(shape: Shape, classes: int, width: int = 16) -> nn.Sequential:
    """LeNet: two 5×5 convolutions of ``width`` and twice as many channels with pools, three linear layers.

    Unlike the paper's it is normalised after the cut, and the device reads from the first linear layer on, as the
    paper has it for VGG-16 and AlexNet: δ is nearly linear, and decoys disturb it.
    """
    kit = _kit("lenet", shape, 4)
    return nn.Sequential(
        OrderedDict(
            conv1=kit.conv(shape[0], width, 5),
            relu1=nn.ReLU(),
            pool1=kit.pool(),
            conv2=kit.conv(width, 2 * width, 5),
            norm2=kit.norm(2 * width),
            relu2=nn.ReLU(),
            pool2=kit.pool(),
            flatten=nn.Flatten(),
            fc1=nn.Linear(_flat(2 * width, shape, 2), 120),
            norm3=nn.BatchNorm1d(120),
            relu3=nn.ReLU(),
            fc2=nn.Linear(120, 84),
            norm4=nn.BatchNorm1d(84),
            relu4=nn.ReLU(),
            fc3=nn.Linear(84, classes),
        )
    )


def alexnet(shape: Shape, classes: int) -> nn.Sequential:
    """AlexNet's five convolutions, narrowed to a quarter for pictures of 32 and 64, and its linear layers."""
    kit = _kit("alexnet", shape, 8)
    return nn.Sequential(
        OrderedDict(
            conv1=kit.conv(shape[0], 24, 5),
            relu1=nn.ReLU(),
            pool1=kit.pool(),
            conv2=kit.conv(24, 48, 3),
            relu2=nn.ReLU(),
            pool2=kit.pool(),
            conv3=kit.conv(48, 96, 3),
            relu3=nn.ReLU(),
            conv4=kit.conv(96, 64, 3),
            relu4=nn.ReLU(),
            conv5=kit.conv(64, 64, 3),
            relu5=nn.ReLU(),
            pool5=kit.pool(),
            flatten=nn.Flatten(),
            fc1=nn.Linear(_flat(64, shape, 3), 256),
            relu6=nn.ReLU(),
            fc2=nn.Linear(256, classes),
        )
    )


def vgg16(shape: Shape, classes: int, width: int = 8) -> nn.Sequential:
    """VGG-16: thirteen 3×3 convolutions in five stages; ``width`` = 8 is an eighth of the original."""
    kit = _kit("vgg16", shape, 16)
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    c_in = shape[0]
    for stage, (times, depth) in enumerate([(1, 2), (2, 2), (4, 3), (8, 3), (8, 3)], start=1):
        for layer in range(1, depth + 1):
            layers[f"conv{stage}_{layer}"] = kit.conv(c_in, times * width, 3)
            layers[f"relu{stage}_{layer}"] = nn.ReLU()
            c_in = times * width
        if stage < 5:  # the last pool would leave 1×1 of 32×32
            layers[f"pool{stage}"] = kit.pool()
    layers["flatten"] = nn.Flatten()
    layers["fc1"] = nn.Linear(_flat(c_in, shape, 4), 16 * width)
    layers["relu6"] = nn.ReLU()
    layers["fc2"] = nn.Linear(16 * width, classes)
    return nn.Sequential(layers)


def mlp(shape: Shape, classes: int) -> nn.Sequential:
    """For tables and very small records."""
    size = torch.Size(shape).numel()
    layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten()) if len(shape) > 1 else OrderedDict()
    widths = [size, 128, 128, 64]
    for number in (1, 2, 3):
        layers[f"fc{number}"] = nn.Linear(widths[number - 1], widths[number])
        layers[f"norm{number}"] = nn.BatchNorm1d(widths[number])
        layers[f"relu{number}"] = nn.ReLU()
    layers["fc4"] = nn.Linear(64, classes)
    return nn.Sequential(layers)


class _Block(nn.Module):
    """relu(shortcut(x) + two convolutions of x); the shortcut is a 1×1 convolution where the shape changes."""

    def __init__(self, kit: _Kit, c_in: int, c_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = kit.conv(c_in, c_out, 3, stride, bias=False)
        self.bn1 = kit.norm(c_out)
        self.relu1 = nn.ReLU()
        self.conv2 = kit.conv(c_out, c_out, 3, bias=False)
        self.bn2 = kit.norm(c_out)
        same = stride == 1 and c_in == c_out
        self.shortcut = (
            nn.Identity() if same else nn.Sequential(kit.conv(c_in, c_out, 1, stride, bias=False), kit.norm(c_out))
        )
        self.relu2 = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        inner = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x)))))
        return self.relu2(inner + self.shortcut(x))  # type: ignore[no-any-return]


def resnet(shape: Shape, classes: int, depth: int = 20) -> nn.Sequential:
    """The residual network of 6n + 2 layers for small pictures (He et al. 2016): 16, 32 and 64 channels."""
    kit = _kit("resnet", shape, 8)
    if depth < 14 or depth % 6 != 2:
        raise ValueError(f"a residual network has 6n + 2 layers, n ≥ 2; {depth} is none")
    blocks = (depth - 2) // 6

    def stage(c_in: int, c_out: int, stride: int) -> nn.Sequential:
        first = _Block(kit, c_in, c_out, stride)
        return nn.Sequential(first, *(_Block(kit, c_out, c_out, 1) for _ in range(blocks - 1)))

    return nn.Sequential(
        OrderedDict(
            conv1=kit.conv(shape[0], 16, 3, bias=False),
            bn1=kit.norm(16),
            relu1=nn.ReLU(),
            layer1=stage(16, 16, 1),  # the record's side
            layer2=stage(16, 32, 2),  # half of it
            layer3=stage(32, 64, 2),  # a quarter
            average=kit.average(),
            flatten=nn.Flatten(),
            fc=nn.Linear(64, classes),
        )
    )


def _residual(depth: int) -> dict[str, Blueprint]:
    """α: the tail begins after the first block of a quarter of the side; β: with the last block."""
    build = partial(resnet, depth=depth)
    last = (depth - 2) // 6 - 1
    return {
        f"resnet{depth}-alpha": Blueprint(build, "layer1", "layer3.1"),
        f"resnet{depth}-beta": Blueprint(build, "layer1", f"layer3.{last}"),
    }


NETWORKS: dict[str, Blueprint] = {
    "lenet": Blueprint(lenet, "pool1", "fc1"),
    "lenet-wide": Blueprint(partial(lenet, width=32), "pool1", "fc1"),
    "alexnet": Blueprint(alexnet, "relu3", "fc1"),
    "vgg16": Blueprint(vgg16, "relu3_2", "fc1"),
    "mlp": Blueprint(mlp, "relu1", "fc4"),
}
for _depth in (20, 32, 44, 56, 110):
    NETWORKS |= _residual(_depth)
