"""A linear classifier on fixed features, trained by noisy gradients, that tells which class a drawn picture shows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.mechanisms.base import Progress
from sfumato.nets.scattering import Scattering
from sfumato.privacy.ledger import Ask
from sfumato.privacy.vault import Counter, Records

GRADIENT = "teacher's gradient"
_CHUNK = 500


@dataclass(frozen=True)
class Lessons:
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

    Features are fixed wavelets; mean, deviation and axes come from *drawn* records, so they cost nothing. Only W
    touches the private records, by full-batch gradient descent on sums of clipped gradients (p − y) fᵀ.
    """

    centre: Tensor
    scale: Tensor
    axes: Tensor
    weight: Tensor

    def __init__(self, shape: tuple[int, ...], classes: int, lessons: Lessons, seed: int) -> None:
        super().__init__()
        self.shape, self.classes, self.lessons, self.seed = shape, classes, lessons, seed
        self._scattering = [Scattering()] if len(shape) == 3 and min(shape[1:]) >= 8 else []  # fixed: not stored
        size = self._raw(torch.zeros(1, *shape)).shape[1]
        self.register_buffer("centre", torch.zeros(size))
        self.register_buffer("scale", torch.ones(size))
        self.register_buffer("axes", torch.zeros(size, min(lessons.axes, size)))
        self.register_buffer("weight", torch.zeros(self.axes.shape[1] + 1, classes))

    def ask(self, share: float) -> Ask:
        return Ask("teacher", GRADIENT, share, self.lessons.steps)

    @torch.no_grad()
    def look(self, drawn: Tensor) -> None:
        """Take mean, deviation and axes of the features from drawn records (n, *shape)."""
        features = self._raw(drawn)
        deviation = features.std(dim=0)
        self.centre.copy_(features.mean(dim=0))
        self.scale.copy_(deviation + _FLOOR * deviation.median().clamp(min=1e-6))
        standard = (features - self.centre) / self.scale
        torch.manual_seed(self.seed)
        width = self.axes.shape[1]
        _, values, vectors = torch.svd_lowrank(standard, q=min(width + 10, *standard.shape), niter=3)
        variances = values[:width].square() / len(features)
        found = vectors[:, :width] * variances.clamp(min=1e-9) ** -self.lessons.whiten
        self.axes.zero_()
        self.axes[:, : found.shape[1]] = found

    def learn(self, counter: Counter, count: float, progress: Progress) -> None:
        """``count`` is a noisy number of records. The second half of the steps is averaged."""
        steps = self.lessons.steps
        weight, speed = torch.zeros_like(self.weight), torch.zeros_like(self.weight)
        average = torch.zeros_like(self.weight)
        remembered: dict[int, Tensor] = {}  # features of each chunk of records, by its place in memory

        def gradient(records: Records) -> tuple[Tensor, Tensor]:
            place = records.x.data_ptr()
            if place not in remembered or len(remembered[place]) != len(records):
                remembered[place] = self.features(records.x)
            features = remembered[place]  # (n, d + 1)
            wrong = (features @ weight).softmax(dim=1) - F.one_hot(records.y, self.classes)
            return features, wrong

        for step in range(steps):
            total = torch.from_numpy(counter.products(GRADIENT, gradient, self.lessons.bound)).float()
            speed = self.lessons.momentum * speed + total / count
            weight = weight - self.lessons.rate * speed
            if step >= steps // 2:
                average += weight / (steps - steps // 2)
            progress(step + 1, steps, {})
        self.weight.copy_(average)

    @torch.no_grad()
    def features(self, x: Tensor) -> Tensor:
        """(n, *shape) → (n, d + 1), a function of each record by itself."""
        rows = []
        for chunk in x.split(_CHUNK):
            found = (self._raw(chunk) - self.centre) / self.scale @ self.axes
            rows.append(F.pad(F.normalize(found, dim=1), (0, 1), value=_ONE))
        return torch.cat(rows)

    def scores(self, x: Tensor) -> Tensor:
        """Class scores before the softmax, (n, classes)."""
        return self.features(x) @ self.weight

    @torch.no_grad()
    def _raw(self, x: Tensor) -> Tensor:
        """Wavelet averages of the picture's brightness, and its colours coarsely; other records as they are: (n, d)."""
        if not self._scattering:
            return x.flatten(1)
        rows = []
        for chunk in x.split(_CHUNK):
            parts = [self._scattering[0](chunk.mean(dim=1, keepdim=True)).flatten(1)]
            if chunk.shape[1] > 1:
                parts.append(F.avg_pool2d(chunk, 4).flatten(1))
            rows.append(torch.cat(parts, dim=1))
        return torch.cat(rows)
