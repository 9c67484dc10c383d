"""The classifier that anybody could train for a task, for as many steps as everybody else's."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F

from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.randomness import derive_seed
from sfumato.nets.encoders import classifier, output_shape
from sfumato.nets.training_loop import as_tensor, minibatches, take_step

_BATCH = 128
_FEWEST_STEPS = 300
"""A receiver with few records passes over them more often."""


def task_steps(records: int, epochs: int) -> int:
    """Steps of so many passes over the records of all."""
    in_epoch = math.ceil(records / _BATCH)
    return in_epoch * max(epochs, math.ceil(_FEWEST_STEPS / in_epoch))


def fit_classifier(
    x: FloatArray, labels: IntArray, classes: int, steps: int, seed: int, *, after: nn.Module | None = None
) -> nn.Module:
    """A classifier of x (N, …), or of what a network makes of it that is trained along (``after``)."""
    torch.manual_seed(seed)
    given, y = as_tensor(x), as_tensor(labels)
    front = nn.Flatten() if after is None else after
    size = torch.Size(output_shape(front, tuple(given.shape[1:]))).numel()
    network = nn.Sequential(front, nn.BatchNorm1d(size), classifier((size,), classes))
    optimiser = torch.optim.Adam(network.parameters(), 1e-3)
    network.train()
    done, epoch = 0, 0
    while done < steps:
        for rows in minibatches(len(given), _BATCH, derive_seed(seed, epoch)):
            take_step(optimiser, F.cross_entropy(network(given[rows]), y[rows]))
            done += 1
            if done == steps:
                break
        epoch += 1
    return network
