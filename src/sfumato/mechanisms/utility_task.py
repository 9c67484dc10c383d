"""The task of a network that reads every utility label: one output layer, split by label, and the sum of the losses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from sfumato.core.dataset import Dataset
from sfumato.core.schema import Schema
from sfumato.nets.training_loop import as_tensor


@dataclass(frozen=True)
class UtilityTask:
    """The labels that a network reads and the classes of each; its scores (B, Σ classes) follow that order."""

    labels: tuple[str, ...]
    classes: tuple[int, ...]

    @classmethod
    def of(cls, schema: Schema, labels: tuple[str, ...]) -> UtilityTask:
        return cls(labels, tuple(len(schema.utility[label]) for label in labels))

    @property
    def width(self) -> int:
        """Class scores of a record."""
        return sum(self.classes)

    def codes(self, data: Dataset) -> Tensor:
        """The class of each record by label: (N, labels)."""
        return as_tensor(np.stack([data.utility[label] for label in self.labels], axis=1))

    def loss(self, scores: Tensor, codes: Tensor) -> Tensor:
        """The cross entropy, summed over labels: scores (B, Σ classes), codes (B, labels)."""
        codes = codes.view(len(codes), -1)  # one label may come as (B,)
        parts = torch.split(scores, list(self.classes), dim=1)
        losses = [F.cross_entropy(part, codes[:, place]) for place, part in enumerate(parts)]
        return sum(losses[1:], start=losses[0])
