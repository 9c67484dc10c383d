"""Students: the classifiers that measure the utility of a synthetic data set (§5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import nn

Shape = tuple[int, ...]


def student(shape: Shape, classes: int, *, width: int = 32, hidden: Sequence[int] = (128,)) -> nn.Sequential:
    """Return two convolutions with ReLU, batch norm and max-pool, ``hidden`` layers with ReLU and an output layer.

    (B, C, H, W) → (B, classes). The paper's student has two hidden layers, of sizes that it does not give. The softmax
    is left to the loss.
    """
    high, wide = (side // 4 for side in shape[1:])
    sizes = (2 * width * high * wide, *hidden)
    return nn.Sequential(
        nn.Conv2d(shape[0], width, 5, padding=2),
        nn.ReLU(),
        nn.BatchNorm2d(width),
        nn.MaxPool2d(2),  # (w, H/2, W/2)
        nn.Conv2d(width, 2 * width, 5, padding=2),
        nn.ReLU(),
        nn.BatchNorm2d(2 * width),
        nn.MaxPool2d(2),  # (2w, H/4, W/4)
        nn.Flatten(),
        *(layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU())),
        nn.Linear(sizes[-1], classes),
    )
