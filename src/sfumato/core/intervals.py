"""95 % intervals. Records of one subject are not independent, so where subjects repeat, subjects are resampled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.metrics import Statistic, Values

Interval = tuple[float, float]
_Z = 1.959963984540054


def wilson(successes: float, n: int) -> Interval:
    """Return the Wilson interval of a proportion."""
    if n == 0:
        return (0.0, 1.0)
    share = successes / n
    centre = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return (max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half)))


def share_interval(hits: Values, subjects: npt.NDArray[Any] | None = None) -> Interval:
    """Return the interval of the mean of yes/no values: Wilson's, or a bootstrap over subjects if they repeat."""
    if _groups(subjects, len(hits)) is None:
        return wilson(float(hits.sum()), len(hits))
    return mean_interval(hits, subjects)


def mean_interval(values: Values, subjects: npt.NDArray[Any] | None = None) -> Interval:
    """Return the bootstrap interval of a mean."""
    return bootstrap(lambda weights: float(weights @ values / weights.sum()), len(values), subjects)


def bootstrap(
    statistic: Statistic, n: int, subjects: npt.NDArray[Any] | None = None, *, resamples: int = 400
) -> Interval:
    """Return the percentile bootstrap interval of a statistic; where subjects repeat, subjects are drawn."""
    rng = np.random.default_rng(0)
    groups = _groups(subjects, n)
    drawn = n if groups is None else int(groups.max()) + 1
    draws = []
    for _ in range(resamples):
        counts = np.bincount(rng.integers(0, drawn, drawn), minlength=drawn).astype(np.float64)
        draws.append(statistic(counts if groups is None else counts[groups]))
    return _percentiles(np.array(draws), statistic(np.ones(n)))


def _groups(subjects: npt.NDArray[Any] | None, n: int) -> npt.NDArray[np.intp] | None:
    """Return subject numbers if subjects have several records, else None."""
    if subjects is None:
        return None
    unique, groups = np.unique(subjects, return_inverse=True)
    return None if len(unique) in (1, n) else groups


def _percentiles(draws: Values, value: float) -> Interval:
    low, high = np.percentile(draws, [2.5, 97.5])
    return (min(float(low), value), max(float(high), value))
