"""What an attacker makes of the public encoder: the way from record to payload before any noise."""

from __future__ import annotations

import copy

from torch import nn

from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Knowledge
from sfumato.nets.training_loop import as_tensor, forward_in_batches

_FEW = 32
"""Records that show a payload's shape; a mechanism with decoys does not take a single one."""


def noiseless(knowledge: Knowledge) -> nn.Module:
    """A frozen copy of the public encoder; without one the record itself is what noise was added to."""
    encoder = nn.Identity() if knowledge.encoder is None else copy.deepcopy(knowledge.encoder)
    return encoder.eval().requires_grad_(False)


def encoded(knowledge: Knowledge, data: Dataset) -> FloatArray:
    """The payload of records without any noise."""
    return forward_in_batches(noiseless(knowledge), as_tensor(data.x)).numpy()


def mismatch(knowledge: Knowledge) -> str | None:
    """Why payloads cannot be compared with what the encoder gives, or None."""
    if knowledge.query is None:
        return "needs query access to the protected pipeline"
    few = knowledge.auxiliary.take(slice(0, _FEW))
    same = knowledge.query(few).shape == encoded(knowledge, few).shape
    return None if same else "needs payloads of the encoder's shape"
