"""Mechanisms that train by a game: a batch at a time, epoch by epoch, at a falling rate."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor

from sfumato.core.dataset import Dataset
from sfumato.core.errors import check_range
from sfumato.core.randomness import Randomness, Seeded, derive_seed
from sfumato.core.run_folder import RunFolder
from sfumato.mechanisms.base import Mechanism, Progress
from sfumato.mechanisms.training import train
from sfumato.nets.training_loop import as_tensor, decay_rate, minibatches

CONTINUED = 0.25
"""Share of ``epochs`` trained when starting from a neighbouring knob setting; ``make bench`` compares the results."""


class Game(Protocol):
    """One mini-batch of a mechanism's training, and the optimisers that go with it."""

    @property
    def optimisers(self) -> Mapping[str, torch.optim.Adam]:
        """By stage."""

    def play(self, x: Tensor, y: Tensor) -> dict[str, float]:
        """Train on a batch; the losses, by name."""


class PlayedMechanism(Mechanism):
    """Plays its game over the owner's records; a subclass says what the game is."""

    epochs: int
    batch: int

    def _check_params(self) -> None:
        check_range(self.name, "epochs", self.epochs, 1, 10_000)
        check_range(self.name, "batch", self.batch, 8, 65_536)

    @abstractmethod
    def _game(self) -> Game:
        """The training game, over freshly built networks."""

    def _fit(self, data: Dataset, run: RunFolder | None, progress: Progress, start: Mechanism | None) -> None:
        epochs = self.epochs
        if start is not None:
            self.load_state(start.state())
            epochs = max(1, math.ceil(CONTINUED * self.epochs))
        game = self._game()
        x, y = as_tensor(data.x), as_tensor(next(iter(data.utility.values())))
        train(self, epochs, lambda epoch: self._epoch(game, x, y, epoch, epochs), game.optimisers, run, progress)

    def _epoch(self, game: Game, x: Tensor, y: Tensor, epoch: int, epochs: int) -> dict[str, float]:
        """One pass over the records; the mean losses."""
        seed = derive_seed(self.seed, self.name, "epoch", epoch)
        torch.manual_seed(seed)  # dropout and noise inside the networks: a resumed epoch draws the same
        means: dict[str, float] = {}
        batches = list(minibatches(len(x), self.batch, seed))
        randomness = Seeded(seed)
        for number, rows in enumerate(batches):
            for optimiser in game.optimisers.values():
                decay_rate(optimiser, (epoch + number / len(batches)) / epochs)
            for name, loss in game.play(self._protect(x[rows], randomness), y[rows]).items():
                means[name] = means.get(name, 0.0) + loss / len(batches)
        return means

    def _protect(self, x: Tensor, randomness: Randomness) -> Tensor:
        """What training sees of a batch: the batch, unless noise is added before the network."""
        return x
