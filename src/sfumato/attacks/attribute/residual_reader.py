"""A residual network that reads a label and learns from other noise in every pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from sfumato.attacks.decoder_training import Constant, Pair, Schedule, fit_decoder
from sfumato.core.dataset import FloatArray, IntArray
from sfumato.nets.residual_classifier import ResidualClassifier
from sfumato.nets.training_loop import as_tensor, forward_in_batches

_RATE, _DECAY = 2e-3, 0.5
_BATCH, _FEWEST_IN_EPOCH = 128, 8
_TEMPERATURES = (1.0, 2.0, 4.0, 8.0, 16.0)
_JUDGED_BY = 4
"""Draws of the held-out records."""


@dataclass
class ResidualReader:
    """Minimises the cross-entropy of a label over draws (R, N, F) of N records' payloads.

    Pass e learns from draw e mod R, so that there is no noise to learn by heart. It starts from the logistic regression
    of the first draw. The pass that is best on the last tenth of the records is kept, or the class shares if they are
    better still.
    """

    epochs: int = 60
    width: int = 256
    fewest_steps: int = 1000
    seed: int = 0

    def fit(self, draws: FloatArray, labels: IntArray) -> Self:
        self.classes_, codes = np.unique(labels, return_inverse=True)
        rest = max(1, len(codes) - max(1, len(codes) // 10))
        y = as_tensor(codes.astype(np.int64))
        x = as_tensor(draws)
        judged = x[:_JUDGED_BY, rest:].flatten(0, 1)  # (R′·n, F)
        held = judged, y[rest:].repeat(len(judged) // len(y[rest:]))
        torch.manual_seed(self.seed)
        network = ResidualClassifier(x[0, :rest], len(self.classes_), self.width)
        network.start_linear(x[0, :rest], y[:rest])
        shares = torch.bincount(y[:rest], minlength=len(self.classes_)) / rest

        def draw(epoch: int) -> Pair:
            return x[epoch % len(x), :rest], y[:rest]

        self._network = fit_decoder(
            network,
            draw,
            held,
            schedule=Schedule(self.epochs, self._batch(rest), _RATE, self.fewest_steps, _DECAY),
            seed=self.seed,
            loss=F.cross_entropy,
            judge=_tempered,
            otherwise=Constant(shares.clamp_min(1e-6).log()),
        )
        return self

    def predict_proba(self, features: FloatArray) -> FloatArray:
        return np.asarray(forward_in_batches(self._network, as_tensor(features)).softmax(dim=1))

    def _batch(self, records: int) -> int:
        return min(_BATCH, max(16, records // _FEWEST_IN_EPOCH))


def _tempered(logits: Tensor, target: Tensor) -> Tensor:
    """The cross-entropy at the best of a few temperatures: a reader that is too sure may still be right."""
    return torch.stack([F.cross_entropy(logits / t, target) for t in _TEMPERATURES]).min()
