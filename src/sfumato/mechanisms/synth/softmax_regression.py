"""A softmax regression on one-hot records, learnt by a few Newton steps from noisy gradients.

    G = Σᵢ clip(φᵢ (softmax(φᵢW) − yᵢ)ᵀ, bound) + noise,   W ← W − (H + λ)⁻¹ G

φ is the record as ones at its bins, one a column. The curvature H costs nothing: it is that of drawn records. λ grows
with the noise, so that directions in which few records lie do not move.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.mechanisms.base import Progress
from sfumato.privacy.ledger import Ask
from sfumato.privacy.query_counter import Counter, Records

GRADIENT = "gradient"
Bins = Callable[[Records], Tensor]


@dataclass(frozen=True)
class NewtonSteps:
    """How the steps are taken; ``bound`` and ``damping`` are in units of √columns and of the noise's deviation."""

    steps: int = 10
    bound: float = 0.7
    damping: float = 1.4
    least_damping: float = 3.0
    flattest: float = 1e-3


class Logistic(nn.Module):
    """Class scores as a sum over columns: a weight for each class and bin.

    ``sizes`` are the numbers of bins of each column. Records come in as bins, (n, columns).
    """

    weight: Tensor

    def __init__(self, sizes: tuple[int, ...], classes: int, newton: NewtonSteps) -> None:
        super().__init__()
        self.sizes, self.classes, self.newton = sizes, classes, newton
        self.register_buffer("weight", torch.zeros(sum(sizes), classes, dtype=torch.float64))
        self._offsets = torch.tensor([sum(sizes[:place]) for place in range(len(sizes))])

    def ask(self, share: float) -> Ask:
        return Ask("labels", GRADIENT, share, self.newton.steps)

    def learn(
        self, counter: Counter, bins: Bins, drawn: Tensor, count: float, noise: float, progress: Progress
    ) -> None:
        """``bins`` is a function of each record by itself; ``drawn`` are bins of synthetic records, ``count`` a noisy
        number of real ones, ``noise`` the multiplier of a step. The later half of the steps is averaged."""
        newton, classes = self.newton, self.classes
        bound = newton.bound * math.sqrt(len(self.sizes))
        damping = max(newton.damping * bound * noise, newton.least_damping)
        weight, kept = torch.zeros_like(self.weight), []
        for step in range(newton.steps):

            def pairs(records: Records, weight: Tensor = weight) -> tuple[Tensor, Tensor]:
                found = bins(records)
                wrong = self._probabilities(found, weight) - F.one_hot(records.y, classes)
                return self._features(found), wrong

            total = torch.as_tensor(counter.products(GRADIENT, pairs, bound))  # (bins, classes)
            total = total - total.mean(dim=1, keepdim=True)  # the same for all classes moves nothing
            weight = weight - self._step(weight, total, drawn, count, damping)
            kept.append(weight)
            progress(step + 1, newton.steps, {})
        self.weight.copy_(torch.stack(kept[len(kept) // 2 :]).mean(dim=0))

    def _step(self, weight: Tensor, gradient: Tensor, drawn: Tensor, count: float, damping: float) -> Tensor:
        """Class by class; (k − 1)/k since the classes' scores move against each other."""
        features = self._features(drawn)
        likely = self._probabilities(drawn, weight)
        scale = count / len(drawn)
        ridge = damping * torch.eye(len(weight), dtype=torch.float64)
        moves = []
        for code in range(self.classes):
            curve = (likely[:, code] * (1.0 - likely[:, code])).clamp(min=self.newton.flattest) * scale
            hessian = features.T @ (features * curve.unsqueeze(1)) + ridge
            moves.append(torch.cholesky_solve(gradient[:, code : code + 1], torch.linalg.cholesky(hessian)))
        return torch.cat(moves, dim=1) * (self.classes - 1) / self.classes

    def probabilities(self, bins: Tensor) -> Tensor:
        """(n, columns) → (n, classes)."""
        return self._probabilities(bins, self.weight)

    def _probabilities(self, bins: Tensor, weight: Tensor) -> Tensor:
        return weight[bins + self._offsets].sum(dim=1).softmax(dim=1)

    def _features(self, bins: Tensor) -> Tensor:
        found = torch.zeros(len(bins), len(self.weight), dtype=torch.float64)
        return found.scatter_(1, bins + self._offsets, 1.0)


def spread(chances: Tensor, generator: torch.Generator) -> Tensor:
    """A class for each record by its chances (n, classes) → (n,), with less chance than independent draws.

    Records are put in the order of their chances, and the draws of neighbours are spread evenly (golden ratio), so that
    among records with the same chances each class has its due.
    """
    most, likely = chances.max(dim=1)
    order = torch.argsort(likely + 0.5 * most)
    start = torch.rand(1, dtype=torch.float64, generator=generator)
    draws = (start + torch.arange(len(order), dtype=torch.float64) * 0.6180339887498949) % 1.0
    y = torch.zeros(len(order), dtype=torch.int64)
    y[order] = (chances[order].cumsum(dim=1) <= draws.unsqueeze(1)).sum(dim=1).clamp(max=chances.shape[1] - 1)
    return y
