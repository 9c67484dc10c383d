"""The algebra of messages key · X: rows, spans and a frame that does not turn with the key.

A message has the shape (d, …); one key turns its d rows. What a key cannot change is all that an attacker has.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.attacks.decoder_training import affordable
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Knowledge, Opened
from sfumato.nets.training_loop import as_tensor, forward_in_batches

MOST_RECORDS = 20_000
"""More of its own an attacker does not send through its device."""


def device_missing(knowledge: Knowledge) -> str | None:
    return "needs a device of its own whose keys it knows" if knowledge.own_device is None else None


def encoder_missing(knowledge: Knowledge) -> str | None:
    return "needs the public encoder" if knowledge.encoder is None else None


def own_device(knowledge: Knowledge, data: Dataset) -> Opened:
    """The attacker's own records through its own device."""
    assert knowledge.own_device is not None  # obstacle() has seen to it
    return knowledge.own_device(data)


def most_records(knowledge: Knowledge, most: int = MOST_RECORDS) -> int:
    """How many records' messages fit into memory."""
    sample = own_device(knowledge, knowledge.auxiliary.take(slice(0, 64))).payload
    return affordable(min(most, len(knowledge.auxiliary)), sample[0].size)


def features_of(knowledge: Knowledge, records: FloatArray) -> Tensor:
    """The public encoder's feature of each record."""
    assert knowledge.encoder is not None  # obstacle() has seen to it
    return forward_in_batches(knowledge.encoder, as_tensor(np.ascontiguousarray(records)))


def along(messages: Tensor, directions: Tensor) -> Tensor:
    """uᵀX of every message, (B, d, …) and (B, d) → (B, …). Column j of the key gives row j of X."""
    return torch.einsum("nd...,nd->n...", messages, directions)


def flat_rows(messages: Tensor) -> Tensor:
    """(B, d, …) → (B, d, F)."""
    return messages.flatten(2) if messages.dim() > 2 else messages.unsqueeze(2)


def span_basis(messages: Tensor) -> Tensor:
    """An orthonormal basis of every message's row span, (B, d, …) → (B, d, F); zeros where a row is missing."""
    rows = flat_rows(messages)
    values, vectors = torch.linalg.eigh((rows @ rows.mT).double())  # (B, d), (B, d, d)
    kept = values > 1e-6 * values[:, -1:].clamp_min(1e-30)
    scale = torch.where(kept, values.clamp_min(1e-30), 1.0).rsqrt() * kept
    basis: Tensor = (vectors * scale[:, None, :]).mT.float() @ rows
    return basis


def functionals(messages: Tensor, count: int, *, most: int = 256) -> Tensor:
    """(F, count): the directions in which rows are largest, the same for a message and its rotations.

    They are the leading singular vectors of all rows; the first is near the mean feature, where features have one.
    """
    rows = flat_rows(messages[:most]).flatten(0, 1).double()  # (n·d, F)
    values, vectors = torch.linalg.eigh(rows @ rows.T)
    leading = vectors[:, -count:].flip(1) / values[-count:].flip(0).clamp_min(1e-30).sqrt()
    found = (rows.T @ leading).float()  # (F, ≤ count)
    return torch.nn.functional.pad(found, (0, count - found.shape[1]))


class Frame(nn.Module):
    """A message in a frame of its own, with the norm of its rows at every place: (B, d, …) → (B, d + 1, …).

    M = X·W for d fixed functionals W, Q the orthogonal factor of M = QT with det Q = +1, X' = QᵀX. A rotation R turns Q
    with X and leaves X' as it is; a reflection turns the sign of the last row of X' and nothing else. So X' says all
    that the orbit of X under SO(d) says, orientation included: against keys from O(d) that sign is a coin.
    """

    weights: Tensor

    def __init__(self, messages: Tensor) -> None:
        super().__init__()
        self.register_buffer("weights", functionals(messages, messages.shape[1]))

    def forward(self, messages: Tensor) -> Tensor:
        turned = self.turned(messages)
        return torch.cat([turned, (turned**2).sum(1, keepdim=True).sqrt()], 1)

    def turned(self, messages: Tensor) -> Tensor:
        """X' alone."""
        rows = flat_rows(messages)
        turned = _rotation(rows @ self.weights).mT @ rows
        return turned.view_as(messages)


def _rotation(matrices: Tensor) -> Tensor:
    """The orthogonal factor of QR with a positive diagonal, its last column turned so that det = +1."""
    if matrices.shape[1] == 2:  # by hand: many small QRs are slow
        first = nn.functional.normalize(matrices[:, :, 0] + _TINY * torch.tensor([1.0, 0.0]), dim=1)
        return torch.stack([first, torch.stack([-first[:, 1], first[:, 0]], 1)], 2)
    q, r = torch.linalg.qr(matrices)
    q = q * torch.where(torch.diagonal(r, dim1=1, dim2=2) < 0, -1.0, 1.0)[:, None, :]
    sides = torch.linalg.det(q).sign()
    return torch.cat([q[:, :, :-1], q[:, :, -1:] * sides[:, None, None]], 2)


_TINY = 1e-20
"""A message of zeros has a frame, too."""
