"""`mixture`: noisy moments make a Gaussian mixture, a noisy linear teacher labels what is drawn from it."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from sfumato.core.errors import DataError
from sfumato.mechanisms.base import Progress
from sfumato.mechanisms.synth.brightness import Tones
from sfumato.mechanisms.synth.gaussian_mixture import CLASSES, Gaussians, Recipe
from sfumato.mechanisms.synth.linear_teacher import Teacher, TeacherSchedule
from sfumato.mechanisms.synth.methods.method import Method, Task
from sfumato.mechanisms.synth.smooth_warps import warped
from sfumato.mechanisms.synth.teacher_features import SEEN, Eye, Wavelets, pictured
from sfumato.privacy.ledger import Ask, Plan, calibrated
from sfumato.privacy.query_counter import Counter

FIRST, SECOND = "first teacher's gradient", "second teacher's gradient"
TONES = 0.01
"""Its share of the budget."""
_LOOKED_AT, _PICTURED = 12_000, 50_000
"""Drawn pictures for the features' axes, and for the network; with few steps fewer, 120 and 500 for each."""
_MOST_TRIES = 200


class Mixture(Method):
    """All answers are Gaussian sums over all records, so their composition is exact.

    The mixture draws pictures of every class and much in between. A first teacher, on wavelets, says what they show.
    A network learns to see from these pictures and labels, for free; a second teacher reads the network's maps, and
    its labels are released. A student of the pictures comes close to the second teacher, since it learns to see from
    the same pictures; the mixture alone is far behind.
    """

    name = "mixture"
    kinds = ("image", "audio", "signal")

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        shape = task.schema.shape
        self.recipe = recipe_for(task)
        self.gaussians = Gaussians(shape, task.classes, self.recipe, task.seed)
        self.tones = Tones(shape[0])
        self.eye = Eye(shape, task.classes, task.seed) if task.classes > 1 and pictured(shape, SEEN) else None
        self.teachers = self._teachers() if task.classes > 1 else ()

    def _teachers(self) -> tuple[Teacher, ...]:
        """On wavelets, and on what the network sees."""
        task, schedule = self.task, schedule_for(self.task)
        wavelets = Wavelets(task.schema.shape)
        first = Teacher(FIRST, wavelets.forward, wavelets.size, task.classes, schedule, task.seed)
        if self.eye is None:
            return (first,)
        return first, Teacher(SECOND, self.eye.forward, self.eye.size, task.classes, schedule, task.seed)

    def plan(self, records: int) -> tuple[Ask, ...]:
        pictures = self.recipe.share if self.teachers else 1.0 - TONES
        rest = 1.0 - pictures - TONES
        taught = tuple(teacher.ask(rest / len(self.teachers)) for teacher in self.teachers)
        return (*self.gaussians.asks(pictures), self.tones.ask(TONES), *taught)

    def least(self, plan: Plan) -> float:
        """Three standard deviations of a class's count."""
        noise = next(ask.noise for ask in plan if ask.name == CLASSES)
        return 3.0 * noise * self.gaussians.class_error if self.task.classes > 1 else 0.0

    def learn(self, counter: Counter, progress: Progress) -> None:
        plan = calibrated(self.plan(0), self.task.epsilon, self.task.delta)
        self.gaussians.learn(counter, plan)
        self.tones.learn(counter)
        generator = torch.Generator().manual_seed(self.task.seed)
        steps = schedule_for(self.task).steps
        drawn, _ = self.gaussians.draw(min(_LOOKED_AT, max(1000, 120 * steps)), generator)
        self.tones.match(drawn)
        drawn = self.tones.shown(drawn)
        done, total = 0, sum(teacher.schedule.steps for teacher in self.teachers)
        for place, teacher in enumerate(self.teachers):
            if place == 1 and self.eye is not None:
                pictures = self._drawn(min(_PICTURED, 500 * steps), generator)
                self.eye.learn(pictures, self.teachers[0].scores(pictures).softmax(dim=1))
            teacher.look(drawn)
            for _ in teacher.lessons_from(counter, self.gaussians.count):
                done += 1
                progress(done, total, {})

    def sample(self, rows: int, generator: torch.Generator, only: int | None = None) -> tuple[Tensor, Tensor]:
        if not self.teachers:
            drawn, classes = self.gaussians.draw(rows, generator)
            return self.tones.shown(drawn), classes
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
        """Records drawn as ``only`` (or as any class), with what the last teacher sees in them."""
        x = self._drawn(rows, generator, only)
        return x, self.teachers[-1].scores(x).argmax(dim=1)

    def _drawn(self, rows: int, generator: torch.Generator, only: int | None = None) -> Tensor:
        """Records with real contrast; pictures are bent, too."""
        x = self.tones.shown(self.gaussians.draw(rows, generator, only)[0])
        straight = self.task.bend == 0.0 or self.task.schema.kind != "image"
        return x if straight else warped(x, generator, self.task.bend)

    def modules(self) -> dict[str, nn.Module]:
        """The first of two teachers is not needed to draw."""
        found: dict[str, nn.Module] = {"gaussians": self.gaussians, "tones": self.tones}
        if self.eye is not None:
            found["eye"] = self.eye
        return {**found, "teacher": self.teachers[-1]} if self.teachers else found

    def about(self) -> tuple[str, ...]:
        return (
            "Sizes and shares of the method were chosen on MNIST's training part; nothing is chosen on these records.",
        )


def recipe_for(task: Task) -> Recipe:
    """More axes and components where there is budget to see them."""
    plenty = task.epsilon >= 2.0
    recipe = replace(Recipe(), axes=80 if plenty else 50, components=8 if plenty else 5)
    return recipe if task.classes > 1 else replace(recipe, components=32)


def schedule_for(task: Task) -> TeacherSchedule:
    """More and longer steps where they are less noisy."""
    schedule = TeacherSchedule(steps=150, rate=80.0) if task.epsilon >= 2.0 else TeacherSchedule()
    return replace(schedule, steps=task.steps or schedule.steps)
