"""The decoder of an attacker as a program, so that a demonstration can show what is rebuilt from a payload."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sfumato.attacks.reconstruction.inverse_network import InverseNetwork
from sfumato.auditing import Controls, Effort
from sfumato.auditing.staging import scene_of
from sfumato.core import compute
from sfumato.core.dataset import Splits
from sfumato.core.ports import Port
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.halves import Half, sent


class _InRange(nn.Module):
    """A decoder whose records lie in [0, 1]."""

    def __init__(self, decoder: nn.Module) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, payload: Tensor) -> Tensor:
        out: Tensor = self.decoder(payload).clamp(0.0, 1.0)
        return out


def attacker_half(mechanism: Mechanism, device: Half, splits: Splits, effort: Effort, seed: int) -> Half:
    """The audit's own decoder, trained on the attacker's part of the records: payload → record.

    It learns from these records as the networks do from the owner's: it is for demonstrations, and no part of what a
    device or a receiver needs.
    """
    attack = InverseNetwork(
        decoder="residual",
        epochs=effort.attack_epochs,
        width=effort.attack_width,
        fewest_steps=effort.attack_steps,
        renewals=effort.attack_renewals,
    )
    with compute.threads(splits.victim.x[0].size), torch.random.fork_rng(devices=()):
        decoder = attack.train(scene_of(mechanism, splits, effort, seed, Controls()).knowledge)
    shape = mechanism.schema_.shape
    record = Port("record", "float32", (-1, *shape), range=(0.0, 1.0))
    return Half(_InRange(decoder), (sent(device.output),), record)
