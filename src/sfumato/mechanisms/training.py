"""Training by games: a batch at a time, epoch by epoch, saved after each and resumed where it stopped."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Protocol

import torch
from torch import Tensor, nn

from sfumato.core import compute, ranks
from sfumato.core.dataset import Dataset
from sfumato.core.errors import DataError, UsageError
from sfumato.core.randomness import Randomness, Seeded, derive_seed
from sfumato.core.run_folder import RunFolder
from sfumato.core.schema import Schema
from sfumato.mechanisms.base import Mechanism, Progress
from sfumato.mechanisms.parameters import whole
from sfumato.mechanisms.utility_task import UtilityTask
from sfumato.nets.training_loop import as_tensor, decay_rate, load_optimiser_state, minibatches, optimiser_state

CONTINUED = 0.25
"""Share of ``epochs`` trained when starting from a neighbouring knob setting; ``make bench`` compares the results."""


class Trainable(Protocol):
    """What has weights to train."""

    def _modules(self) -> dict[str, nn.Module]: ...

    def state(self) -> dict[str, Tensor]: ...

    def load_state(self, tensors: Mapping[str, Tensor]) -> None: ...


def train(
    trainee: Trainable,
    epochs: int,
    epoch: Callable[[int], dict[str, float]],
    optimisers: Mapping[str, torch.optim.Optimizer],
    run: RunFolder | None,
    progress: Progress,
) -> None:
    """Call ``epoch`` with 0 … ``epochs`` − 1 (it trains and gives its losses), leaving out what ``run`` has done."""
    saved = None if run is None else run.load_progress()
    done = 0
    if saved is not None:
        done, tensors = saved
        trainee.load_state(tensors)
        load_optimiser_state(optimisers, tensors)
    for module in trainee._modules().values():
        module.train()
    for number in range(done, epochs):
        with compute.learning():
            losses = epoch(number)
        ranks.level(list(trainee._modules().values()))
        if run is not None:
            run.save_progress(number + 1, trainee.state() | optimiser_state(optimisers), losses)
        progress(number + 1, epochs, losses)


class Game(Protocol):
    """One mini-batch of a mechanism's training, and the optimisers that go with it."""

    @property
    def optimisers(self) -> Mapping[str, torch.optim.Optimizer]:
        """By stage."""

    def play(self, x: Tensor, y: Tensor) -> dict[str, float]:
        """Train on a batch x (B, …) with codes y (B, labels); the losses, by name."""


class TrainedByGame(Mechanism):
    """Plays its game over the owner's records, at a falling rate; a subclass says what the game is."""

    by_shares = True
    serves_numbers = True

    epochs: int = whole(default=4, low=1, high=10_000, help="passes over the owner's records")
    batch: int = whole(default=128, low=8, high=65_536, help="records in a mini-batch")

    @abstractmethod
    def _game(self) -> Game:
        """The training game, over freshly built networks."""

    def _copies(self) -> int:
        return 0

    def _fit(self, data: Dataset, run: RunFolder | None, progress: Progress, start: Mechanism | None) -> None:
        epochs, fewest = self.epochs, ranks.FEWEST * ranks.count()
        if self.batch < fewest:
            raise UsageError(
                f"batch {self.batch} is too small for {ranks.count()} processes: give --set batch={fewest} or more."
            )
        if ranks.count() > 1 and len(data) < fewest:
            raise DataError(f"{data.name}: {ranks.count()} processes need {fewest} records at least, got {len(data)}.")
        if start is not None:
            self.load_state(start.state())
            epochs = max(1, math.ceil(CONTINUED * self.epochs))
        game = self._game()
        x, y = as_tensor(data.x), self._task(data.schema).codes(data)
        train(self, epochs, lambda epoch: self._epoch(game, x, y, epoch, epochs), game.optimisers, run, progress)

    def _epoch(self, game: Game, x: Tensor, y: Tensor, epoch: int, epochs: int) -> dict[str, float]:
        """One pass over the records; the mean losses."""
        seed = derive_seed(self.seed, self.name, "epoch", epoch)
        torch.manual_seed(ranks.seed_of(seed))  # noise inside the networks: a resumed epoch draws the same
        means: dict[str, float] = {}
        batches = list(minibatches(len(x), self.batch, seed, ranks.FEWEST * ranks.count()))
        randomness = Seeded(ranks.seed_of(seed))
        for number, batch in enumerate(batches):
            rows = ranks.share(batch)
            for optimiser in game.optimisers.values():
                decay_rate(optimiser, (epoch + number / len(batches)) / epochs)
            for name, loss in game.play(self._protect(x[rows], randomness), y[rows]).items():
                means[name] = means.get(name, 0.0) + loss / len(batches)
        return means

    def _task(self, schema: Schema) -> UtilityTask:
        """Every utility label that it was fitted for; before a fit, all of the schema's."""
        return UtilityTask.of(schema, self.labels_ or tuple(schema.utility))

    def _protect(self, x: Tensor, randomness: Randomness) -> Tensor:
        """What training sees of a batch: the batch, unless noise is added before the network or pictures are moved."""
        return x
