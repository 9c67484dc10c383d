"""The classifier that anybody could train for a task, for as many steps as everybody else's."""

from __future__ import annotations

import copy
import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.number_scale import NumberScale
from sfumato.core.randomness import derive_seed
from sfumato.core.schema import Schema
from sfumato.nets.encoders import classifier, output_shape
from sfumato.nets.training_loop import adam, as_tensor, forward_in_batches, minibatches, take_step

_BATCH = 128


def task_steps(records: int, epochs: int, fewest: int = 300) -> int:
    """Steps of so many passes over the records of all; a receiver with few records passes over them more often."""
    in_epoch = math.ceil(records / _BATCH)
    return in_epoch * max(epochs, math.ceil(fewest / in_epoch))


def lesson(label: str, codes: IntArray, schema: Schema) -> tuple[IntArray | FloatArray, NumberScale | None]:
    """What a receiver with these ``codes`` learns: classes, or numbers in deviations from their mean, and the scale."""
    scale = schema.numbers.get(label)
    if scale is None:
        return codes, None
    scale = scale.learnt(codes)
    return scale.standard(codes), scale


def fit_classifier(
    x: FloatArray, labels: IntArray | FloatArray, classes: int, steps: int, seed: int, *, after: nn.Module | None = None
) -> nn.Module:
    """A classifier of x (N, …), or of what a network makes of it that is trained along (``after``).

    ``labels`` are classes or, where ``classes`` is 1, standardised numbers.
    """
    if classes == 1:
        return _fit_regression(x, labels, steps, seed, after)
    torch.manual_seed(seed)
    given, y = as_tensor(x), as_tensor(labels)
    front = nn.Flatten() if after is None else after
    size = torch.Size(output_shape(front, tuple(given.shape[1:]))).numel()
    network = nn.Sequential(front, nn.BatchNorm1d(size), classifier((size,), classes))
    optimiser = adam(network.parameters(), 1e-3)
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


def _fit_regression(
    x: FloatArray, numbers: IntArray | FloatArray, steps: int, seed: int, after: nn.Module | None
) -> nn.Module:
    """The same network with one output for standardised numbers, in as many steps.

    Long tails are learnt by heart soon: the pass that is best on a tenth of the records is kept, or their mean.
    """
    torch.manual_seed(seed)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    held, rest = order[: max(1, len(x) // 10)], order[max(1, len(x) // 10) :]
    given, y = as_tensor(x), as_tensor(np.asarray(numbers, dtype=np.float32))[:, None]
    front = nn.Flatten() if after is None else after
    size = torch.Size(output_shape(front, tuple(given.shape[1:]))).numel()
    network = nn.Sequential(front, nn.BatchNorm1d(size), classifier((size,), 1))
    optimiser = adam(network.parameters(), 1e-3)
    network.train()
    best, kept = float((y[held] - y[rest].mean()).square().mean()), None
    done, epoch = 0, 0
    while done < steps:
        for rows in minibatches(len(rest), _BATCH, derive_seed(seed, epoch)):
            take_step(optimiser, F.mse_loss(network(given[rest[rows]]), y[rest[rows]]))
            done += 1
            if done == steps:
                break
        epoch += 1
        error = float((forward_in_batches(network, given[held]) - y[held]).square().mean())
        if error < best:
            best, kept = error, copy.deepcopy(network.state_dict())
    return _Mean(float(y[rest].mean())) if kept is None else _loaded(network, kept)


class _Mean(nn.Module):
    """The same number for everybody."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.register_buffer("value", torch.tensor([value]))
        self.value: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, …) → (B, 1)
        return self.value.expand(len(x), 1)


def _loaded(network: nn.Module, weights: dict[str, torch.Tensor]) -> nn.Module:
    network.load_state_dict(weights)
    return network
