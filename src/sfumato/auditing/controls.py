"""What each attack and task gets from the raw records; measured once for a data set and kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sfumato.core.dataset import FloatArray

Values = Mapping[str, float]
"""Metric → value."""


class Controls:
    """Shared by several audits of the same splits, effort and seed."""

    def __init__(self) -> None:
        self._values: dict[str, Values] = {}
        self._answers: dict[str, FloatArray] = {}

    def get(self, key: str, measure: Callable[[], Values]) -> Values:
        if key not in self._values:
            self._values[key] = measure()
        return self._values[key]

    def answers(self, key: str, give: Callable[[], FloatArray]) -> FloatArray:
        """Class scores of the victims, (N, classes), by a learner that sees no release."""
        if key not in self._answers:
            self._answers[key] = give()
        return self._answers[key]
