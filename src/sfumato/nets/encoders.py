"""Encoders (the device half) and classifiers (the cloud half) for each kind of data.

An encoder is a plain chain of layers, so that ``mirror`` can reverse it. Shapes are channels first, without the batch
axis: (C, H, W), (C, L) or (D,).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

Shape = tuple[int, ...]


def _block(dims: int, c_in: int, c_out: int, kernel: int, *, padding: int, pool: int) -> list[nn.Module]:
    """Return convolution, batch norm, ReLU and (if ``pool`` > 1) max-pool: the paper's encoder layers (§2.3)."""
    conv, norm, max_pool = (
        (nn.Conv1d, nn.BatchNorm1d, nn.MaxPool1d) if dims == 1 else (nn.Conv2d, nn.BatchNorm2d, nn.MaxPool2d)
    )
    layers: list[nn.Module] = [conv(c_in, c_out, kernel, padding=padding, bias=False), norm(c_out), nn.ReLU()]
    return [*layers, max_pool(pool)] if pool > 1 else layers


def lenet(shape: Shape) -> nn.Sequential:
    """Return LeNet's convolutional part, for 28×28 images, (C, L) signals and log-mel images."""
    dims = len(shape) - 1
    return nn.Sequential(
        *_block(dims, shape[0], 16, 5, padding=0, pool=2),  # 28×28 → (16, 12, 12)
        *_block(dims, 16, 32, 5, padding=0, pool=2),  # → (32, 4, 4)
    )


def alexnet(shape: Shape) -> nn.Sequential:
    """Return AlexNet's five convolutions at a quarter of the width, for 32×32 images."""
    dims = len(shape) - 1
    return nn.Sequential(
        *_block(dims, shape[0], 24, 5, padding=2, pool=2),  # (24, 16, 16)
        *_block(dims, 24, 48, 3, padding=1, pool=2),  # (48, 8, 8)
        *_block(dims, 48, 64, 3, padding=1, pool=1),
        *_block(dims, 64, 64, 3, padding=1, pool=1),
        *_block(dims, 64, 64, 3, padding=1, pool=2),  # (64, 4, 4)
    )


def vgg16(shape: Shape) -> nn.Sequential:
    """Return VGG-16's thirteen convolutions at an eighth of the width, for images of 32×32 and more."""
    dims = len(shape) - 1
    widths = [(8, 2), (16, 2), (32, 3), (64, 3), (64, 3)]
    layers: list[nn.Module] = []
    c_in = shape[0]
    for stage, (width, depth) in enumerate(widths):
        for layer in range(depth):
            last = layer == depth - 1 and stage < 4  # a pool after the last stage would leave 1×1
            layers += _block(dims, c_in, width, 3, padding=1, pool=2 if last else 1)
            c_in = width
    return nn.Sequential(*layers)  # 32×32 → (64, 2, 2)


def mlp(shape: Shape) -> nn.Sequential:
    """Return an MLP for tables and very small records; batch norm puts numeric and one-hot entries on one scale."""
    size = torch.Size(shape).numel()
    return nn.Sequential(
        *([nn.Flatten()] if len(shape) > 1 else []),
        nn.BatchNorm1d(size),
        nn.Linear(size, 64),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.Linear(64, 32),
        nn.BatchNorm1d(32),
        nn.ReLU(),
    )


ENCODERS: dict[str, Callable[[Shape], nn.Sequential]] = {
    "lenet": lenet,
    "alexnet": alexnet,
    "vgg16": vgg16,
    "mlp": mlp,
}


_SMALLEST_SIDE = 16
"""Two 5×5 convolutions with pooling need sides of at least this size."""


def default_encoder(kind: str, shape: Shape) -> str:
    """Return the paper's architecture for the data (§3): LeNet for small records, AlexNet for 32×32 colour images."""
    if kind == "table" or min(shape[1:]) < _SMALLEST_SIDE:
        return "mlp"
    return "alexnet" if kind == "image" and shape[0] == 3 else "lenet"


def output_shape(module: nn.Module, shape: Shape) -> Shape:
    """Return the shape of one record after ``module``."""
    modes = [(each, each.training) for each in module.modules()]  # a wrapper's is not that of its parts
    module.eval()
    with torch.no_grad():
        out = module(torch.zeros(1, *shape))
    for each, mode in modes:
        each.training = mode
    return tuple(out.shape[1:])


def classifier(features: Shape, classes: int, hidden: int = 128) -> nn.Sequential:
    """Return the MLP classifier C of the paper: features → class scores."""
    size = torch.Size(features).numel()
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(size, hidden),
        nn.BatchNorm1d(hidden),
        nn.ReLU(),
        nn.Linear(hidden, classes),
    )
