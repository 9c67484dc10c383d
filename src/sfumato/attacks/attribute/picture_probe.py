"""A convolutional probe: a private label read from pictures that leave, such as those decoded from a latent."""

from __future__ import annotations

from dataclasses import field

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from sfumato.attacks.attribute.queried_records import QueriedRecords
from sfumato.attacks.base import AttributeAttack
from sfumato.attacks.decoder_training import Constant, Pair, Schedule, fit_decoder
from sfumato.core.dataset import FloatArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release
from sfumato.nets.student_cnn import student
from sfumato.nets.training_loop import as_tensor, channels_last, forward_in_batches

_BATCH, _RATE, _DECAY = 64, 2e-3, 0.05
_JUDGED_BY = 2
"""Draws of the held-out records."""


class PictureProbe(AttributeAttack):
    """Two convolutions and two linear layers (the ``student`` network) on released pictures (N, C, H, W).

    Each pass learns from other noise. The pass that is best on the last tenth of the records is kept, or the class
    shares if they are better still.
    """

    name = "probe-cnn"

    label: str
    queried: QueriedRecords = field(default_factory=QueriedRecords)
    epochs: int = 6
    width: int = 16
    fewest_steps: int = 500

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        seed = derive_seed(knowledge.seed, self.name, self.label) % 2**32
        own = self.queried.of(knowledge)
        shape, classes = release.payload.shape[1:], len(own.data.schema.classes(self.label))
        draws = as_tensor(own.payloads).reshape(*own.payloads.shape[:2], *shape)  # (R, N, C, H, W)
        y = as_tensor(own.data.label(self.label))
        rest = max(1, len(y) - max(1, len(y) // 10))
        judged = draws[:_JUDGED_BY, rest:].flatten(0, 1)
        torch.manual_seed(seed)
        network = channels_last(nn.Sequential(nn.BatchNorm2d(shape[0]), student(shape, classes, width=self.width)))
        shares = torch.bincount(y[:rest], minlength=classes) / rest

        def draw(epoch: int) -> Pair:
            return draws[epoch % len(draws), :rest], y[:rest]

        fitted = fit_decoder(
            network,
            draw,
            (judged, y[rest:].repeat(len(judged) // len(y[rest:]))),
            schedule=Schedule(self.epochs, min(_BATCH, max(16, rest // 8)), _RATE, self.fewest_steps, _DECAY),
            seed=seed,
            loss=F.cross_entropy,
            otherwise=Constant(shares.clamp_min(1e-6).log()),
        )
        logits = forward_in_batches(fitted, as_tensor(release.payload.astype(np.float32)))
        return np.asarray(logits.softmax(dim=1))
