"""What the attacks that train a decoder share: the loop, what is remembered, and how many records are read."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.core import compute
from sfumato.core.dataset import Dataset
from sfumato.core.fresh_seeds import asking
from sfumato.core.randomness import derive_seed
from sfumato.nets.training_loop import forward_in_batches, minibatches

Pair = tuple[Tensor, Tensor]
"""What the decoder is given, and what it is to give."""
Draw = Callable[[int], Pair]
Loss = Callable[[Tensor, Tensor], Tensor]
T = TypeVar("T")

MOST_NUMBERS = 240_000_000
"""Payloads of so many numbers in all are held at once: not quite 1 GB."""

_FEWEST_HELD = 16
"""A message of a mechanism with keys takes several records."""


@dataclass(frozen=True)
class Schedule:
    """Passes over the records, at least until ``fewest_steps``; the peak of the one-cycle rate; weight decay."""

    epochs: int = 6
    batch: int = 128
    rate: float = 4e-3
    fewest_steps: int = 500
    decay: float = 0.0


class Constant(nn.Module):
    """The same answer for every payload."""

    def __init__(self, answer: Tensor) -> None:
        super().__init__()
        self.answer = answer

    def forward(self, payload: Tensor) -> Tensor:  # (B, …) → (B, *answer)
        return self.answer.expand(len(payload), *self.answer.shape)


class Memo(Generic[T]):
    """What was learnt of the last two pipelines: an audit goes to and fro between a release and its control."""

    def __init__(self) -> None:
        self._kept: list[tuple[tuple[object, ...], T]] = []

    def get(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        """The value for the very same objects as before, or a new one."""
        for known, value in self._kept:
            if len(known) == len(key) and all(a is b for a, b in zip(known, key, strict=True)):
                return value
        with torch.random.fork_rng(devices=()), asking("learner"):  # whoever asks first: the same is learnt
            value = make()
        self._kept = [*self._kept[-1:], (key, value)]
        return value


def held_out(data: Dataset, seed: int, *, most: int | None = None) -> tuple[Dataset, Dataset]:
    """A tenth to judge by, and the rest to learn from, of at most ``most`` records."""
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed)).numpy()[:most]
    held = max(min(_FEWEST_HELD, len(order) // 2), len(order) // 10, 1)
    return data.take(order[:held]), data.take(order[held:])


def affordable(most: int, numbers: int) -> int:
    """At most ``most`` records, and fewer if each payload has many numbers."""
    return max(2, min(most, MOST_NUMBERS // max(1, numbers)))


def drawn(query: Callable[[], Pair], *, every: int) -> Draw:
    """Pairs that are queried anew every so many epochs; 0: never."""
    pair = query()

    def draw(epoch: int) -> Pair:
        nonlocal pair
        if epoch > 0 and every and epoch % every == 0:
            del pair
            pair = query()
        return pair

    return draw


def fit_decoder(
    network: nn.Module,
    draw: Draw,
    held: Pair,
    *,
    schedule: Schedule,
    seed: int,
    loss: Loss = F.mse_loss,
    judge: Loss | None = None,
    otherwise: nn.Module | None = None,
) -> nn.Module:
    """The network with the weights of the epoch that is best on ``held``, or ``otherwise`` if that is better still.

    ``draw(epoch)`` gives what an epoch learns from. Epochs are judged by ``judge``, which is the loss unless given.
    """
    judge = judge or loss
    inputs, target = draw(0)
    in_epoch = len(target) // schedule.batch + 1
    epochs = max(schedule.epochs, math.ceil(schedule.fewest_steps / in_epoch))
    fused = inputs.device.type == "cpu"  # one pass over the weights instead of a dozen
    optimiser = torch.optim.AdamW(network.parameters(), weight_decay=schedule.decay, fused=fused)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=schedule.rate, total_steps=epochs * in_epoch)
    best = judge(forward_in_batches(network, held[0]), held[1]).item()
    kept = copy.deepcopy(network.state_dict())
    if best == 0.0:
        return network  # the payload is the record: there is nothing to learn
    for epoch in range(epochs):
        if epoch > 0:
            del inputs, target  # before there are others: they may fill half of the memory
            inputs, target = draw(epoch)
        network.train()
        for rows in minibatches(len(target), schedule.batch, derive_seed(seed, epoch)):
            optimiser.zero_grad()
            with compute.learning():
                error = loss(network(inputs[rows]), target[rows])
            error.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            rates.step()
        judged = judge(forward_in_batches(network, held[0]), held[1]).item()
        if judged < best:
            best, kept = judged, copy.deepcopy(network.state_dict())
    network.load_state_dict(kept)
    if otherwise is not None and judge(forward_in_batches(otherwise, held[0]), held[1]).item() < best:
        return otherwise  # nobody is worse off for having seen the release
    return network
