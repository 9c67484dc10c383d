"""The small classifier of the filter's paper (§6.5.3), as an estimator with scikit-learn's manners."""

from __future__ import annotations

import math
from typing import Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from torch import nn
from torch.nn import functional as F

from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.randomness import derive_seed
from sfumato.nets.training_loop import adam, as_tensor, forward_in_batches, minibatches, take_step

_STEPS, _MOST_EPOCHS = 2000, 40
"""Few records are not passed over hundreds of times: a net of this size knows them by heart long before."""
_BATCH = 256


class SmallNetwork(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """x → FC(15) → ELU → FC(classes); 60 instead of 15 for records of 50 numbers and more, as for the paper's faces."""

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, features: FloatArray, labels: IntArray) -> Self:
        self.classes_, codes = np.unique(labels, return_inverse=True)
        torch.manual_seed(self.seed)
        size = features.shape[1]
        hidden = 60 if size >= 50 else 15
        self._network = nn.Sequential(nn.Linear(size, hidden), nn.ELU(), nn.Linear(hidden, len(self.classes_)))
        optimiser = adam(self._network.parameters(), 5e-3)
        in_epoch = math.ceil(len(features) / _BATCH)
        epochs = min(_MOST_EPOCHS, math.ceil(_STEPS / in_epoch))
        schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, epochs * in_epoch)
        x, y = as_tensor(features.astype(np.float32)), as_tensor(codes.astype(np.int64))
        for epoch in range(epochs):
            for rows in minibatches(len(x), _BATCH, derive_seed(self.seed, epoch)):
                take_step(optimiser, F.cross_entropy(self._network(x[rows]), y[rows]))
                schedule.step()
        return self

    def predict_proba(self, features: FloatArray) -> FloatArray:
        logits = forward_in_batches(self._network, as_tensor(features.astype(np.float32)))
        return np.asarray(logits.softmax(dim=1))
