"""The white-box attacker: it looks for a record that the public encoder takes to the payload."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from sfumato.attacks.base import ReconstructionAttack
from sfumato.attacks.public_encoder import mismatch, noiseless
from sfumato.attacks.reconstruction.inverse_network import InverseNetwork
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.release import Release
from sfumato.core.schema import Kind
from sfumato.nets.training_loop import as_tensor, decay_rate, forward_in_batches

Objective = Callable[[Tensor], Tensor]
"""What is sought (N, …) → its cost, (N,)."""

WEIGHTS = (0.01, 0.1, 1.0)
_OWN = 32
"""Records of the attacker's own on which the prior's weight is chosen."""
_KNOWN = 5000
"""Records of the attacker's own among which starts are looked for."""
_BATCH = 256
_UNIT = 0.01
"""An error of this share of the features' variance costs as much as a total variation of one, at weight 1."""


class EncoderInversion(ReconstructionAttack):
    """argmin |E(x) − payload|²/s + w·roughness(x) over x in [0, 1], by Adam through the public encoder.

    s is ``_UNIT`` of the variance of the attacker's own features, the roughness a total variation (for tables, which
    have no neighbours, the squared distance from the first start). Of several starts the one that ends with the least
    objective counts: the decoder's guess, and the attacker's records of nearest features. Under noise this is the most
    likely latent. w is whichever is best on records of the attacker's own that its decoder has not learnt from; where
    no w improves on the decoder's guess there, that guess is the answer.
    """

    name = "inverse-encoder"
    title = "argmin"
    how = "an optimiser looks for a record that the public encoder takes to the message"
    one_by_one = True
    rate: ClassVar[float] = 0.03

    inverse: InverseNetwork
    steps: int = 100
    starts: int = 2

    def obstacle(self, knowledge: Knowledge) -> str | None:
        if knowledge.own_device is not None:
            return "a rotated message is not the encoder's output"
        return super().obstacle(knowledge) or mismatch(knowledge)

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        view = View(knowledge, self.inverse.own_records(knowledge)[1])
        weight = self._best_weight(view, knowledge)
        parts = torch.split(as_tensor(release.payload), _BATCH)
        answers = [self._answer(view, part, self.first_guesses(view, part, knowledge), weight) for part in parts]
        return torch.cat(answers).numpy()

    def first_guesses(self, view: View, payload: Tensor, knowledge: Knowledge) -> list[Tensor]:
        """Where the search starts, each (N, *shape); the first is the answer if no search helps."""
        decoded = as_tensor(self.inverse.decode(payload.numpy(), knowledge)).clamp(0.0, 1.0)
        return [decoded, *view.nearest(payload, self.starts - 1)]

    def _best_weight(self, view: View, knowledge: Knowledge) -> float | None:
        """The prior's weight that is best on the attacker's own records; None if not to search is better still."""
        assert knowledge.query is not None  # obstacle() has seen to it
        own = self.inverse.own_records(knowledge)[0].take(slice(0, _OWN))
        payload, truth = as_tensor(knowledge.query(own)), as_tensor(own.x)
        first = self.first_guesses(view, payload, knowledge)[:1]
        errors = {
            weight: F.mse_loss(self._answer(view, payload, first, weight), truth).item() for weight in (None, *WEIGHTS)
        }
        return min(errors, key=lambda weight: errors[weight])

    def _answer(self, view: View, payload: Tensor, starts: list[Tensor], weight: float | None) -> Tensor:
        if weight is None:
            return starts[0]

        def cost(x: Tensor) -> Tensor:
            return view.misfit(x, payload) + weight * roughness(x, view.kind, starts[0])

        return least(cost, [descend(cost, start, self.steps, self.rate, box=True) for start in starts])


class View:
    """The public encoder as the attacker uses it, with the features of the ``known`` records of its own."""

    def __init__(self, knowledge: Knowledge, known: Dataset) -> None:
        self.encoder, self.kind = noiseless(knowledge), known.schema.kind
        self._records = as_tensor(known.x[:_KNOWN])
        self._features = forward_in_batches(self.encoder, self._records).flatten(1)
        self._unit = max(float(self._features.var(0).sum()) * _UNIT, 1e-12)

    def misfit(self, x: Tensor, payload: Tensor) -> Tensor:
        """|E(x) − payload|²/s of each record, (N,)."""
        gap: Tensor = self.encoder(x) - payload
        return gap.flatten(1).square().sum(1) / self._unit

    def nearest(self, payload: Tensor, count: int) -> list[Tensor]:
        """The attacker's records whose features are nearest to each payload, best first: ``count`` × (N, *shape)."""
        count = min(count, len(self._records))
        rows = torch.cdist(payload.flatten(1), self._features).topk(count, largest=False).indices  # (N, count)
        return [self._records[rows[:, place]] for place in range(count)]


def roughness(x: Tensor, kind: Kind, anchor: Tensor) -> Tensor:
    """The total variation of each record over its axes but the first; of a table's rows |x − anchor|²: (N,)."""
    if kind == "table":
        return (x - anchor).square().sum(1)
    return sum((x.diff(dim=axis).abs().flatten(1).sum(1) for axis in range(2, x.dim())), torch.zeros(len(x)))


def descend(cost: Objective, start: Tensor, steps: int, rate: float, *, box: bool) -> Tensor:
    """Where Adam arrives from ``start`` (N, …), each row on its own; with ``box`` it never leaves [0, 1]."""
    x = start.clone().requires_grad_(True)
    optimiser = torch.optim.Adam([x], rate)
    for step in range(steps):
        decay_rate(optimiser, step / steps)
        (x.grad,) = torch.autograd.grad(cost(x).sum(), x)
        optimiser.step()
        if box:
            x.data.clamp_(0.0, 1.0)
    return x.detach()


@torch.no_grad()
def least(cost: Objective, found: list[Tensor]) -> Tensor:
    """For each record the one of least cost: k × (N, …) → (N, …)."""
    best = torch.stack([cost(x) for x in found]).argmin(dim=0)  # (N,)
    return torch.stack(found)[best, torch.arange(len(best))]
