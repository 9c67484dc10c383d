"""The paper's student, the classifier that measures the utility of a synthetic data set (§5.2)."""

from __future__ import annotations

from torch import nn

Shape = tuple[int, ...]


def student(shape: Shape, classes: int, *, width: int = 32, hidden: int = 128) -> nn.Sequential:
    """Return two convolutions with ReLU, batch norm and max-pool, and two linear layers: (B, C, H, W) → (B, classes).

    The softmax is left to the loss.
    """
    high, wide = (side // 4 for side in shape[1:])
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
        nn.Linear(2 * width * high * wide, hidden),
        nn.ReLU(),
        nn.Linear(hidden, classes),
    )
