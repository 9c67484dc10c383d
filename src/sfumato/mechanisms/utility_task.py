"""The task of a network that reads every utility label: one output layer, split by label, and the sum of the losses."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sfumato.core.dataset import Dataset
from sfumato.core.schema import Schema
from sfumato.mechanisms.label_targets import label_loss, targets, widths


@dataclass(frozen=True)
class UtilityTask:
    """The labels that a network reads and the classes of each, 1 for a number; its scores (B, Σ classes) follow that
    order."""

    labels: tuple[str, ...]
    classes: tuple[int, ...]

    @classmethod
    def of(cls, schema: Schema, labels: tuple[str, ...]) -> UtilityTask:
        return cls(labels, widths(schema, labels))

    @property
    def width(self) -> int:
        """Class scores of a record."""
        return sum(self.classes)

    def codes(self, data: Dataset) -> Tensor:
        """The class of each record by label, or its standardised number: (N, labels)."""
        return targets({label: data.utility[label] for label in self.labels}, data.schema).T.contiguous()

    def loss(self, scores: Tensor, codes: Tensor) -> Tensor:
        """The cross entropy, or the squared error of a number, summed over labels: scores (B, Σ classes), codes
        (B, labels)."""
        codes = codes.view(len(codes), -1)  # one label may come as (B,)
        parts = torch.split(scores, list(self.classes), dim=1)
        losses = [label_loss(part, codes[:, place]) for place, part in enumerate(parts)]
        return sum(losses[1:], start=losses[0])
