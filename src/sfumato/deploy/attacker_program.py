"""``attacker.onnx``: a decoder from what leaves to the record, to show people what an attacker sees.

It is one attacker of many, trained on the attacker's part of the run's records, with keys, noise and company drawn anew
in every few passes. Figures come from an audit, never from this one.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sfumato.attacks.decoder_training import Constant, Schedule, drawn, fit_decoder
from sfumato.core import compute
from sfumato.core.dataset import Dataset
from sfumato.core.ports import Port
from sfumato.core.randomness import Seeded, derive_seed
from sfumato.deploy.drawn_inputs import drawn as drawn_values
from sfumato.deploy.program_checks import by_torch
from sfumato.mechanisms.halves import Half, sent
from sfumato.nets.residual_decoder import residual_decoder
from sfumato.nets.training_loop import as_tensor

Array = npt.NDArray[Any]

_WIDTH = 32
_SCHEDULE = Schedule(epochs=12, batch=64, rate=6e-3, fewest_steps=1500)
_RENEW = 3
"""So many passes learn from the same answers."""


class _Messages(nn.Module):
    """A decoder behind the layer that lays a message's d rows beside each other, (N, d, C, …) → (N, d·C, …)."""

    def __init__(self, decoder: nn.Module, joined: bool) -> None:
        super().__init__()
        self.decoder = decoder
        self.joined = joined

    def forward(self, payload: Tensor) -> Tensor:
        return torch.as_tensor(self.decoder(payload.flatten(1, 2) if self.joined else payload))


def attacker_half(device: Half, records: Dataset, private: Array | None, *, rows: int = 1, seed: int = 0) -> Half:
    """A decoder for what ``device`` makes, trained on these records.

    Args:
        device: The device half.
        records: The attacker's own.
        private: Their private labels as the device half takes them, if it does.
        rows: Records in a message; its own is one of them.
        seed: Of the training, and of what is drawn for it.
    """
    order = np.random.default_rng(derive_seed(seed, "attacker program")).permutation(len(records))
    held = max(1, len(order) // 10)
    decoder = _network(device.output.row, records.schema.shape)
    asked = count()

    def answers(chosen: npt.NDArray[np.intp]) -> tuple[Tensor, Tensor]:
        draw = Seeded(derive_seed(seed, f"question {next(asked)}"))
        labels = None if private is None else private[chosen]
        x = records.x[chosen]
        return as_tensor(by_torch(device, _inputs(device, x, labels, rows, draw))), as_tensor(x)

    with torch.random.fork_rng(devices=()), compute.threads(int(np.prod(records.schema.shape))):
        torch.manual_seed(derive_seed(seed, "attacker program"))
        trained = fit_decoder(
            decoder,
            drawn(lambda: answers(order[held:]), every=_RENEW),
            answers(order[:held]),
            schedule=_SCHEDULE,
            seed=seed,
            otherwise=Constant(as_tensor(records.x).mean(0)),
        )
    rebuilt = Port("rebuilt", "float32", (-1, *records.schema.shape), range=(0.0, 1.0))
    return Half(trained.eval(), (sent(device.output),), rebuilt)


def _network(row: tuple[int, ...], record: tuple[int, ...]) -> nn.Module:
    joined = len(row) == 4  # a message of several turned maps
    return _Messages(residual_decoder((row[0] * row[1], *row[2:]) if joined else row, record, _WIDTH), joined)


def _inputs(device: Half, x: Array, private: Array | None, rows: int, draw: Seeded) -> list[Array]:
    """Records, their labels, company from among themselves, and what the device draws."""
    found: list[Array] = []
    for port in device.inputs:
        if port.source == "record":
            found.append(np.ascontiguousarray(x))
        elif port.source == "private":
            assert private is not None, "the device half asks for private labels"
            found.append(private)
        elif port.source == "company":
            found.append(_company(len(x), rows, draw))
        else:
            found.append(drawn_values(port, len(x), draw))
    return found


def _company(records: int, rows: int, draw: Seeded) -> Array:
    """For every record a message of ``rows`` records in random order, its own among them, (N, rows)."""
    steps = np.argsort(draw.uniform((records, records - 1)), axis=1)[:, : rows - 1] + 1
    others = (np.arange(records)[:, None] + steps) % records
    together = np.concatenate([np.arange(records)[:, None], others], axis=1)
    mixed = np.argsort(draw.uniform((records, rows)), axis=1)
    return np.take_along_axis(together, mixed, axis=1).astype(np.int64)
