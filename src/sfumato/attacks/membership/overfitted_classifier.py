"""A classifier that learns its records by heart: what overfits tells members from strangers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.randomness import derive_seed
from sfumato.nets.training_loop import adam, as_tensor, forward_in_batches, minibatches, take_step

_HIDDEN, _BATCH, _RATE = 256, 128, 2e-3
_EPOCHS, _MOST_STEPS = 30, 2000

LogProbabilities = Callable[[FloatArray], FloatArray]
"""Rows (N, D) → log p of each class, (N, classes)."""


def fit_lookup(rows: FloatArray, numbers: npt.NDArray[np.float64]) -> Callable[[FloatArray], FloatArray]:
    """Rows (N, D) → the number of the nearest row that it has seen, (N, 1)."""
    from sklearn.neighbors import KNeighborsRegressor

    known = KNeighborsRegressor(1).fit(rows, numbers)
    return lambda points: np.asarray(known.predict(points), dtype=np.float32)[:, None]


def fit_memoriser(rows: FloatArray, labels: IntArray, classes: int, seed: int) -> LogProbabilities:
    """One wide hidden layer on standardised rows (N, D), trained without any regularisation."""
    torch.manual_seed(seed)
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    scale = np.where(deviation > 1e-3, deviation, 1.0).astype(np.float32)

    def ready(x: FloatArray) -> torch.Tensor:
        return as_tensor(np.asarray((x - mean) / scale, dtype=np.float32))

    x, y = ready(rows), as_tensor(labels.astype(np.int64))
    network = nn.Sequential(nn.Linear(x.shape[1], _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, classes))
    optimiser = adam(network.parameters(), _RATE)
    in_epoch = math.ceil(len(x) / _BATCH)
    for epoch in range(max(1, min(_EPOCHS, _MOST_STEPS // in_epoch))):
        for batch in minibatches(len(x), _BATCH, derive_seed(seed, epoch)):
            take_step(optimiser, F.cross_entropy(network(x[batch]), y[batch]))

    def log_probabilities(points: FloatArray) -> FloatArray:
        return np.asarray(forward_in_batches(network, ready(points)).log_softmax(dim=1))

    return log_probabilities
