"""The contract of an attack on a private label that is a number, and how its guesses are measured."""

from __future__ import annotations

import numpy as np

from sfumato.attacks.base import Attack, Guess, Measured
from sfumato.core import metrics
from sfumato.core.dataset import Dataset
from sfumato.core.intervals import EVERYTHING, bootstrap, mean_interval
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.threats import ATTRIBUTE, Direction

R2, MAE = "r2", "mae"


class NumberAttack(Attack):
    """The guess is the value of one private label for each record, (N,), in the label's own unit."""

    threat = ATTRIBUTE
    label: str

    def target(self) -> str:
        return self.label

    def trivial(self, knowledge: Knowledge, n: int) -> metrics.Values:
        """The mean of the auxiliary data: the best constant under squared error."""
        return np.full(n, knowledge.auxiliary.numbers(self.label).mean())

    def trivials(self, knowledge: Knowledge, n: int) -> list[Guess]:
        """And the median: the best constant under absolute error."""
        return [self.trivial(knowledge, n), np.full(n, np.median(knowledge.auxiliary.numbers(self.label)))]

    def measure(self, guess: Guess, truth: Truth) -> list[Measured]:
        victim = truth.open()
        return measure_regression(victim.numbers(self.label), guess, victim, better_for_owner="lower")


def measure_regression(
    truth: metrics.Values, guess: metrics.Values, data: Dataset, *, better_for_owner: Direction
) -> list[Measured]:
    """R², which ranks, and the mean absolute error in the label's own unit.

    ``better_for_owner`` is the direction of R²: "lower" for an attack, "higher" for a task. Errors go the other way.
    """
    explained, errors = metrics.explained(truth, guess), np.abs(truth - guess)
    r2 = metrics.r2_statistic(truth, guess)
    interval = bootstrap(r2, len(truth), data.ids)
    less: Direction = "higher" if better_for_owner == "lower" else "lower"
    return [
        Measured(R2, better_for_owner, float(explained.mean()), interval, (-np.inf, 1.0), True, explained),
        Measured(MAE, less, float(errors.mean()), _errors_interval(errors, data), (0.0, np.inf), False, errors),
    ]


def _errors_interval(errors: metrics.Values, data: Dataset) -> tuple[float, float]:
    low, high = mean_interval(errors, data.ids, EVERYTHING)
    return max(0.0, low), high
