"""`mixture`: noisy moments make a Gaussian mixture, a noisy linear teacher labels what is drawn from it."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor, nn

from sfumato.core.errors import DataError
from sfumato.mechanisms.base import Progress
from sfumato.mechanisms.synthesis.gaussians import CLASSES, Gaussians, Recipe
from sfumato.mechanisms.synthesis.method import Method, Task
from sfumato.mechanisms.synthesis.teacher import Lessons, Teacher
from sfumato.mechanisms.synthesis.tones import Tones
from sfumato.privacy.ledger import Ask, Plan, calibrated
from sfumato.privacy.vault import Counter

PICTURES = 0.3
"""The mixture's share of the budget where there is a teacher."""
TONES = 0.01
_LOOKED_AT = 12_000
_MOST_TRIES = 200


class Mixture(Method):
    """All answers are Gaussian sums over all records, so their composition is exact.

    The mixture draws pictures of every class and much in between; the teacher, trained with the larger part of the
    budget, says what they show. A student that learns from both comes close to the teacher, which is far better than
    the mixture: it is not hurt by pictures that no record looks like.
    """

    name = "mixture"
    kinds = ("image", "audio", "signal")

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        shape = task.schema.shape
        self.gaussians = Gaussians(shape, task.classes, recipe_for(task), task.seed)
        self.tones = Tones(shape[0])
        lessons = Lessons()
        self.teacher = (
            Teacher(shape, task.classes, replace(lessons, steps=task.steps or lessons.steps), task.seed)
            if task.classes > 1
            else None
        )

    def plan(self, records: int) -> tuple[Ask, ...]:
        pictures = (*self.gaussians.asks(PICTURES), self.tones.ask(TONES))
        return pictures if self.teacher is None else (*pictures, self.teacher.ask(1.0 - PICTURES - TONES))

    def least(self, plan: Plan) -> float:
        """Three standard deviations of a class's count."""
        noise = next(ask.noise for ask in plan if ask.name == CLASSES)
        return 3.0 * noise * self.gaussians.class_error if self.task.classes > 1 else 0.0

    def learn(self, counter: Counter, progress: Progress) -> None:
        plan = calibrated(self.plan(0), self.task.epsilon, self.task.delta)
        self.gaussians.learn(counter, plan)
        self.tones.learn(counter)
        generator = torch.Generator().manual_seed(self.task.seed)
        drawn, _ = self.gaussians.draw(_LOOKED_AT, generator)
        self.tones.match(drawn)
        if self.teacher is not None:
            self.teacher.look(self.tones.apply(drawn))
            self.teacher.learn(counter, self.gaussians.count, progress)

    def sample(self, rows: int, generator: torch.Generator, only: int | None = None) -> tuple[Tensor, Tensor]:
        if self.teacher is None:
            drawn, classes = self.gaussians.draw(rows, generator)
            return self.tones.apply(drawn), classes
        if only is None:
            return self._labelled(rows, generator, None)
        pieces: list[Tensor] = []
        for _ in range(_MOST_TRIES):
            x, y = self._labelled(max(rows, 64), generator, only)
            pieces.append(x[y == only])
            if sum(map(len, pieces)) >= rows:
                return torch.cat(pieces)[:rows], torch.full((rows,), only)
        raise DataError(f"the model makes no records of class {only}: its budget was too small for that.")

    def _labelled(self, rows: int, generator: torch.Generator, only: int | None) -> tuple[Tensor, Tensor]:
        """Records drawn as ``only`` (or as any class), with what the teacher sees in them."""
        assert self.teacher is not None
        x = self.tones.apply(self.gaussians.draw(rows, generator, only)[0])
        return x, self.teacher.scores(x).argmax(dim=1)

    def modules(self) -> dict[str, nn.Module]:
        teacher = {} if self.teacher is None else {"teacher": self.teacher}
        return {"gaussians": self.gaussians, "tones": self.tones, **teacher}

    def about(self) -> tuple[str, ...]:
        return (
            "Sizes and shares of the method were chosen on MNIST's training part; nothing is chosen on these records.",
        )


def recipe_for(task: Task) -> Recipe:
    """More axes and components where there is budget to see them."""
    axes = 50 if task.epsilon < 2.0 else 80
    return (
        replace(Recipe(), axes=axes, components=5 if task.epsilon < 2.0 else 8)
        if task.classes > 1
        else replace(Recipe(), axes=axes, components=min(64, 10 * math.ceil(task.epsilon)))
    )
