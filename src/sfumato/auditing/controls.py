"""What each attack and task gets from the raw records; measured once for a data set and kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Values = Mapping[str, float]
"""Metric → value."""


class Controls:
    """Shared by several audits of the same splits, effort and seed."""

    def __init__(self) -> None:
        self._values: dict[str, Values] = {}

    def get(self, key: str, measure: Callable[[], Values]) -> Values:
        if key not in self._values:
            self._values[key] = measure()
        return self._values[key]
