"""A linear classifier on features that are not private, trained by noisy gradients: it tells what a picture shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.privacy.ledger import Ask
from sfumato.privacy.query_counter import Counter, Records

Features = Callable[[Tensor], Tensor]
"""(n, *shape) → (n, size), of each record by itself; no private record has touched it but through the counter."""
_CHUNK = 500


@dataclass(frozen=True)
class TeacherSchedule:
    """How the teacher learns. The step is of gradient descent with momentum on records of length 1."""

    steps: int = 100
    axes: int = 400
    whiten: float = 0.25
    """Axes of variance v are scaled by v^−whiten."""
    bound: float = 0.3
    """The length to which a record's gradient is clipped."""
    rate: float = 50.0
    momentum: float = 0.9


_ONE = 0.3
"""The constant feature, beside features of length 1."""
_FLOOR = 0.3
"""Features that hardly vary are not blown up: this share of the median deviation is added."""


class Teacher(nn.Module):
    """softmax(Wᵀ [f, 0.3]) with f the standardised, partly whitened and normalised features of a record.

    Mean, deviation and axes of the features come from *drawn* records, so they cost nothing. Only W touches the
    private records, by full-batch gradient descent on sums of clipped gradients f (p − y)ᵀ.
    """

    centre: Tensor
    scale: Tensor
    axes: Tensor
    weight: Tensor

    def __init__(
        self, question: str, features: Features, size: int, classes: int, schedule: TeacherSchedule, seed: int
    ) -> None:
        super().__init__()
        self.question, self._given, self.classes, self.schedule, self.seed = question, features, classes, schedule, seed
        self.register_buffer("centre", torch.zeros(size))
        self.register_buffer("scale", torch.ones(size))
        self.register_buffer("axes", torch.zeros(size, min(schedule.axes, size)))
        self.register_buffer("weight", torch.zeros(self.axes.shape[1] + 1, classes))

    def ask(self, share: float) -> Ask:
        """Its gradients, all steps together."""
        return Ask("teacher", self.question, share, self.schedule.steps)

    @torch.no_grad()
    def look(self, drawn: Tensor) -> None:
        """Take mean, deviation and axes of the features from drawn records (n, *shape)."""
        features = self._raw(drawn)
        deviation = features.std(dim=0)
        self.centre.copy_(features.mean(dim=0))
        self.scale.copy_(deviation + _FLOOR * deviation.median().clamp(min=1e-6))
        standard = (features - self.centre) / self.scale
        width = self.axes.shape[1]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            _, values, vectors = torch.svd_lowrank(standard, q=min(width + 10, *standard.shape), niter=3)
        variances = values[:width].square() / len(features)
        found = vectors[:, :width] * variances.clamp(min=1e-9) ** -self.schedule.whiten
        self.axes.zero_()
        self.axes[:, : found.shape[1]] = found

    def lessons_from(self, counter: Counter, count: float) -> Iterator[int]:
        """Each step once; the last sets W, averaged over the second half. ``count`` is a noisy number of records."""
        steps = self.schedule.steps
        weight, speed, average = (torch.zeros_like(self.weight, dtype=torch.float64) for _ in range(3))
        remembered: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}

        def gradient(records: Records) -> tuple[Tensor, Tensor]:
            place = records.x.data_ptr(), len(records)
            if place not in remembered:  # the records are held with their features, so that no others take their place
                remembered[place] = records.x, self.features(records.x).double()
            features = remembered[place][1]  # (n, d + 1)
            wrong = (features @ weight).softmax(dim=1) - F.one_hot(records.y, self.classes)
            return features, wrong

        for step in range(steps):
            total = torch.as_tensor(counter.products(self.question, gradient, self.schedule.bound))
            speed = self.schedule.momentum * speed + total / count
            weight = weight - self.schedule.rate * speed
            if step >= steps // 2:
                average += weight / (steps - steps // 2)
            if step == steps - 1:
                self.weight.copy_(average)
            yield step

    @torch.no_grad()
    def features(self, x: Tensor) -> Tensor:
        """(n, *shape) → (n, d + 1), a function of each record by itself."""
        rows = []
        for chunk in torch.split(x, _CHUNK):
            found = (self._raw(chunk) - self.centre) / self.scale @ self.axes
            rows.append(F.pad(F.normalize(found, dim=1), (0, 1), value=_ONE))
        return torch.cat(rows)

    def scores(self, x: Tensor) -> Tensor:
        """Class scores before the softmax, (n, classes)."""
        return self.features(x) @ self.weight

    @torch.no_grad()
    def _raw(self, x: Tensor) -> Tensor:
        return torch.cat([self._given(chunk) for chunk in torch.split(x, _CHUNK)])
