"""Training in stages, one after the other, each over records of its own; resumable after every epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sfumato.core.randomness import derive_seed
from sfumato.core.run_folder import RunFolder
from sfumato.mechanisms.training import Trainable, train
from sfumato.nets.training_loop import decay_rate, minibatches

if TYPE_CHECKING:
    from sfumato.mechanisms.base import Progress

Play = Callable[[Tensor], dict[str, float]]
"""Row numbers of a mini-batch → its losses."""


def nothing() -> None:
    """What a stage does at its end, and after an epoch, by default."""


@dataclass(frozen=True)
class TrainingStage:
    """``begin`` prepares what the stage reads, when the stages before it are done, and gives its ``Play``.

    ``after`` runs after every epoch, ``end`` after the last one.
    """

    name: str
    records: int
    optimisers: Mapping[str, torch.optim.Adam]
    begin: Callable[[], Play]
    end: Callable[[], None] = nothing
    after: Callable[[], None] = nothing


def train_stages(
    trainee: Trainable,
    stages: Sequence[TrainingStage],
    *,
    epochs: int,
    batch: int,
    seed: int,
    run: RunFolder | None,
    progress: Progress,
) -> None:
    """``epochs`` of each stage in turn, as one training."""
    plays: dict[str, Play] = {}

    def epoch(number: int) -> dict[str, float]:
        stage, local = stages[number // epochs], number % epochs
        if stage.name not in plays:
            plays.clear()  # the stage before this one may let go of its records
            plays[stage.name] = stage.begin()
        turn = derive_seed(seed, stage.name, local)
        torch.manual_seed(turn)
        batches = list(minibatches(stage.records, batch, turn))
        means: dict[str, float] = {}
        for place, rows in enumerate(batches):
            for optimiser in stage.optimisers.values():
                decay_rate(optimiser, (local + place / len(batches)) / epochs)
            for name, loss in plays[stage.name](rows).items():
                means[name] = means.get(name, 0.0) + loss / len(batches)
        stage.after()
        if local == epochs - 1:
            stage.end()
        return means

    every = {f"{stage.name}-{name}": each for stage in stages for name, each in stage.optimisers.items()}
    train(trainee, epochs * len(stages), epoch, every, run, progress)
