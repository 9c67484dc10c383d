"""Ratios of ways to do the same, taken in turns within one run: neighbours in time see the same load."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Work = Callable[[], object]


@dataclass(frozen=True)
class Ratio:
    """Median and quartiles of the rounds' ratios."""

    median: float
    quartiles: tuple[float, float]
    rounds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Ratio:
        if len(values) < 2:
            return cls(values[0], (values[0], values[0]), len(values))
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, (low, high), len(values))

    def to_json(self) -> dict[str, Any]:
        low, high = self.quartiles
        return {"median": figure(self.median), "quartiles": [figure(low), figure(high)], "rounds": self.rounds}


@dataclass(frozen=True)
class Rounds:
    """Seconds of every way in every round."""

    seconds: Mapping[str, Sequence[float]]

    def ratio(self, over: str, under: str | Sequence[str]) -> Ratio:
        """Of one way over another, or over the mean of several (the same work before and after)."""
        beneath = [under] if isinstance(under, str) else list(under)
        rows = zip(self.seconds[over], *(self.seconds[name] for name in beneath), strict=True)
        return Ratio.of([first / statistics.mean(others) for first, *others in rows])

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    def medians(self) -> dict[str, float]:
        return {name: figure(self.median(name)) for name in self.seconds}


def interleaved(
    ways: Mapping[str, Work], rounds: int, *, warm: int = 0, clock: Callable[[], float] = time.perf_counter
) -> Rounds:
    """Every way once in every round, one after the other; ``warm`` rounds before them are not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(-warm, rounds):
        for name, work in ways.items():
            started = clock()
            work()
            took = clock() - started
            if number >= 0:
                seconds[name].append(took)
    return Rounds(seconds)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Inside, torch works with so many."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def figure(value: float) -> float:
    """Four digits are more than a shared machine can say."""
    return float(f"{value:.4g}")
