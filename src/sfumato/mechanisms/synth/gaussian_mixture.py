"""A mixture of Gaussians for each class, in the principal axes of smooth pictures, from noisy moments alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.mechanisms.synth.cosine_transform import cosine_basis
from sfumato.privacy.ledger import Ask, Plan
from sfumato.privacy.query_counter import Counter, Records, clipped

DoubleArray = npt.NDArray[np.float64]

MEAN, RADIUS, AXES, CLASSES, CENTRES, MOMENTS = (
    "mean record",
    "mean radius",
    "second moment",
    "class means",
    "component centres",
    "component moments",
)


@dataclass(frozen=True)
class Recipe:
    """Sizes and shares of the mixture: ``share`` of the whole budget, the others of this part."""

    share: float = 0.3
    frequencies: int = 14
    """Cosines for each side; finer detail is not learnt."""
    axes: int = 50
    components: int = 5
    leading: int = 20
    """Axes in which records choose their component."""
    rounds: int = 3
    mean: float = 0.02
    radius: float = 0.005
    second: float = 0.35
    classes: float = 0.15
    centres: float = 0.3
    moments: float = 0.175


_WEIGHT = 0.35
"""What a record adds to the count of its component, beside a vector of length ≤ 1."""
_CLASS_WEIGHT = 0.5
_BRIGHT = 0.5
"""Records longer than 0.5·√D (half of white everywhere) are shortened for the mean alone."""
_CALM = 0.5
"""A record is drawn with half to all of its component's deviation: some clean, some odd."""
_FEWEST = 30.0
"""Means and covariances are divided by no smaller count than this."""


class Gaussians(nn.Module):
    """x = mean + ρ·B P z, z ~ Σᵢ wᵢ N(mᵢ, RᵢRᵢᵀ) for the class of x.

    B (D, m)     cosines, public
    P (m, k)     principal axes of the centred records
    ρ            the length to which centred records are clipped
    w (C, g)     component weights, m (C, g, k) means, R (C, g, k, k) roots of covariances
    """

    mean: Tensor
    radius: Tensor
    axes: Tensor
    weights: Tensor
    means: Tensor
    roots: Tensor
    count: float = 1.0
    """How many records there are, by the noisy answer to the first question."""

    def __init__(self, shape: tuple[int, ...], classes: int, recipe: Recipe, seed: int) -> None:
        super().__init__()
        self.shape, self.classes, self.recipe, self.seed = shape, classes, recipe, seed
        self._basis = cosine_basis(shape, recipe.frequencies)  # public, not stored
        size, width = self._basis.shape
        k, g = min(recipe.axes, width), recipe.components
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("radius", torch.ones((), dtype=torch.float64))
        self.register_buffer("axes", torch.zeros(width, k, dtype=torch.float64))
        self.register_buffer("weights", torch.full((classes, g), 1.0 / (classes * g), dtype=torch.float64))
        self.register_buffer("means", torch.zeros(classes, g, k, dtype=torch.float64))
        self.register_buffer("roots", torch.zeros(classes, g, k, k, dtype=torch.float64))

    @property
    def class_error(self) -> float:
        """The standard deviation of a class's count for noise multiplier 1."""
        return math.hypot(1.0, _CLASS_WEIGHT) / _CLASS_WEIGHT

    def asks(self, share: float) -> tuple[Ask, ...]:
        """What the mixture will ask, with ``share`` of the budget in all."""
        r = self.recipe
        return (
            Ask("axes", MEAN, share * r.mean),
            Ask("axes", RADIUS, share * r.radius),
            Ask("axes", AXES, share * r.second),
            Ask("mixture", CLASSES, share * r.classes),
            Ask("mixture", CENTRES, share * r.centres, r.rounds),
            Ask("mixture", MOMENTS, share * r.moments),
        )

    def learn(self, counter: Counter, plan: Plan) -> None:
        """Ask all of ``asks``; ``plan`` tells how much noise the moments carry."""
        total = self._learn_axes(counter)
        centres = self._learn_centres(counter, total)
        self._learn_components(counter, centres, next(ask.noise for ask in plan if ask.name == MOMENTS))

    def _low(self, records: Records) -> Tensor:
        """Centred records in cosines, (n, m)."""
        return (records.x.flatten(1).double() - self.mean) @ self._basis

    def _code(self, records: Records) -> Tensor:
        """z in units of the radius, (n, k)."""
        return self._low(records) @ self.axes / self.radius

    def _learn_axes(self, counter: Counter) -> DoubleArray:
        """Mean, radius, and the leading eigenvectors of the second moment; their eigenvalues (k,)."""
        bright = _BRIGHT * math.sqrt(len(self.mean))
        one = 0.3 * bright  # a record's part in the count

        def pixels(records: Records) -> Tensor:
            return with_count(clipped(records.x.flatten(1), bright), one)

        total = counter.sums(MEAN, pixels, math.hypot(bright, one))[0]
        count = self.count = max(float(total[-1]) / one, 1.0)
        self.mean.copy_(torch.as_tensor(total[:-1] / count).clamp(0.0, 1.0))
        length = counter.sums(RADIUS, lambda r: self._low(r).norm(dim=1, keepdim=True) / bright, 1.0)[0, 0]
        self.radius.fill_(1.1 * bright * min(max(float(length) / count, 0.01), 1.0))
        second = counter.moments(AXES, lambda r: self._low(r) / self.radius, 1.0)[0]
        values, vectors = np.linalg.eigh(second)
        k = self.axes.shape[1]
        self.axes.copy_(torch.as_tensor(vectors[:, ::-1][:, :k].copy()))
        return np.asarray(np.maximum(values[::-1][:k] / count, 0.0))

    def _learn_centres(self, counter: Counter, spread: DoubleArray) -> Tensor:
        """Class means, then Lloyd's algorithm from random centres around them: (C, g, k), nonzero in leading axes."""
        leading, g = min(self.recipe.leading, len(spread)), self.recipe.components
        total = counter.sums(
            CLASSES,
            lambda r: with_count(clipped(self._code(r), 1.0), _CLASS_WEIGHT),
            math.hypot(1.0, _CLASS_WEIGHT),
            groups=lambda r: r.y,
            size=self.classes,
        )
        counts = np.maximum(total[:, -1] / _CLASS_WEIGHT, _FEWEST)
        class_means = torch.as_tensor(total[:, :-1] / counts[:, None])  # (C, k)
        generator = torch.Generator().manual_seed(self.seed)
        apart = torch.zeros(self.classes, g, len(spread), dtype=torch.float64)
        apart[:, :, :leading] = torch.randn(self.classes, g, leading, generator=generator, dtype=torch.float64)
        offsets = 0.35 * torch.as_tensor(np.sqrt(spread)) * apart  # (C, g, k) around the class mean
        self.means.copy_(class_means.unsqueeze(1) + offsets)
        for _ in range(self.recipe.rounds):

            def around(records: Records) -> Tensor:
                apart = (self._code(records) - class_means[records.y])[:, :leading]
                return with_count(clipped(apart, 1.0), _WEIGHT)

            total = counter.sums(
                CENTRES, around, math.hypot(1.0, _WEIGHT), groups=self._component, size=self.classes * g
            )
            counts = np.maximum(total[:, -1] / _WEIGHT, _FEWEST)
            moved = torch.as_tensor(total[:, :-1] / counts[:, None]).view(self.classes, g, leading)
            self.means[:, :, :leading] = class_means[:, None, :leading] + moved
        return class_means

    def _component(self, records: Records) -> Tensor:
        """The nearest component of the record's class, as one code in C·g."""
        leading = min(self.recipe.leading, self.axes.shape[1])
        code = self._code(records)[:, None, :leading]  # (n, 1, l)
        near = (code - self.means[records.y][:, :, :leading]).square().sum(2).argmin(1)
        return records.y * self.recipe.components + near

    def _learn_components(self, counter: Counter, class_means: Tensor, noise: float) -> None:
        """Count, mean and covariance of each component from one moment of [z − class mean, weight]."""
        bound = math.hypot(1.0, _WEIGHT)
        g, k = self.recipe.components, self.axes.shape[1]

        def around(records: Records) -> Tensor:
            return with_count(clipped(self._code(records) - class_means[records.y], 1.0), _WEIGHT)

        total = counter.moments(MOMENTS, around, bound, groups=self._component, size=self.classes * g)
        self.fill(total.reshape(self.classes, g, k + 1, k + 1), class_means, noise * bound**2 / math.sqrt(2.0))

    def fill(self, total: DoubleArray, class_means: Tensor, spread: float) -> None:
        """Components from noisy moments (C, g, k+1, k+1) whose entries err by ``spread``.

        A covariance is drawn towards the class's pooled one by how much noise it carries, and keeps the eigenvalues
        that stand out of it.
        """
        k = self.axes.shape[1]
        counts = total[:, :, k, k] / _WEIGHT**2  # (C, g)
        safe = np.maximum(counts, _FEWEST)
        means = total[:, :, k, :k] / _WEIGHT / safe[:, :, None]  # (C, g, k)
        for c in range(self.classes):
            weight = np.maximum(counts[c], 1.0)
            between = np.einsum("g,gi,gj->ij", weight, means[c], means[c])
            pooled = (total[c, :, :k, :k].sum(0) - between) / weight.sum()
            pooled_noise = spread * math.sqrt(len(weight)) / weight.sum()
            scale = max(float(np.trace(pooled)), 1e-9) / math.sqrt(k)
            for j in range(len(weight)):
                own = total[c, j, :k, :k] / safe[c, j] - np.outer(means[c, j], means[c, j])
                noise = spread / safe[c, j]
                trust = 1.0 / (1.0 + (noise * math.sqrt(k) / scale) ** 2)
                mixed_noise = math.hypot(trust * noise, (1.0 - trust) * pooled_noise)
                self.roots[c, j] = torch.as_tensor(
                    root(trust * own + (1.0 - trust) * pooled, math.sqrt(k) * mixed_noise)
                )
        self.means.copy_(class_means.unsqueeze(1) + torch.as_tensor(means))
        shares = torch.as_tensor(np.maximum(counts, 0.0)) + 1e-9
        self.weights.copy_(shares / shares.sum())

    def draw(self, rows: int, generator: torch.Generator, only: int | None = None) -> tuple[Tensor, Tensor]:
        """So many records before any clean-up, (rows, *shape), and their classes."""
        g, k = self.recipe.components, self.axes.shape[1]
        weights = self.weights.flatten() if only is None else self.weights[only]
        chosen = torch.multinomial(weights, rows, replacement=True, generator=generator)
        chosen = chosen if only is None else only * g + chosen
        noise = torch.randn(rows, k, generator=generator, dtype=torch.float64)
        noise *= 1.0 - _CALM * torch.rand(rows, 1, generator=generator, dtype=torch.float64)
        codes = torch.empty(rows, k, dtype=torch.float64)
        for component in torch.unique(chosen).tolist():
            here = chosen == component
            c, j = divmod(component, g)
            codes[here] = self.means[c, j] + noise[here] @ self.roots[c, j].T
        x = self.mean + self.radius * (codes @ self.axes.T) @ self._basis.T
        return smooth(x.float().view(rows, *self.shape)), chosen // g


def smooth(records: Tensor) -> Tensor:
    """Pictures (n, C, H, W) under a 3 × 3 window, against the speckles of noisy axes; others as they are."""
    if records.ndim != 4:
        return records
    side = torch.tensor([0.2, 0.6, 0.2])
    window = (side[:, None] * side).expand(records.shape[1], 1, 3, 3)
    return F.conv2d(F.pad(records, (1, 1, 1, 1), mode="replicate"), window, groups=records.shape[1])


def with_count(rows: Tensor, weight: float) -> Tensor:
    """A last column that counts the records, (n, m) → (n, m + 1)."""
    return torch.cat([rows, torch.full((len(rows), 1), weight, dtype=rows.dtype)], dim=1)


def root(covariance: npt.NDArray[Any], floor: float) -> DoubleArray:
    """R with R Rᵀ = the part of a symmetric matrix whose eigenvalues exceed ``floor``."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray(vectors * np.sqrt(np.where(values > floor, values, 0.0)))
