"""Intervals cover: simulated with subjects that differ, few of them and many."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import norm, t

from sfumato.core.intervals import Interval, bootstrap, mean_interval, share_interval, wilson
from sfumato.core.metrics import auroc_statistic

Rng = np.random.Generator
Groups = npt.NDArray[np.intp]
Trial = Callable[[Rng, Groups, npt.NDArray[np.float64]], Interval]
"""Subjects' numbers and effects, one a record → the interval of one simulated sample."""


def mean(rng: Rng, groups: Groups, effect: npt.NDArray[np.float64]) -> Interval:
    return mean_interval(effect + rng.normal(size=len(groups)), groups)


def skewed_mean(rng: Rng, groups: Groups, effect: npt.NDArray[np.float64]) -> Interval:
    return mean_interval(0.01 * np.exp(0.5 * effect) * rng.exponential(size=len(groups)), groups, (0.0, 1.0))


def share(rng: Rng, groups: Groups, effect: npt.NDArray[np.float64]) -> Interval:
    return share_interval((rng.random(len(groups)) < norm.cdf(1.0 + effect)).astype(np.float64), groups)


def auroc(rng: Rng, groups: Groups, effect: npt.NDArray[np.float64]) -> Interval:
    truth = (rng.random(len(groups)) < 0.4).astype(np.int64)
    score = (1.0 + 0.7 * effect) * truth + rng.normal(size=len(groups))
    statistic = auroc_statistic(truth, np.stack([-score, score], axis=1).astype(np.float32))
    return bootstrap(statistic, len(truth), groups, limits=(0.0, 1.0))


TRUTH: dict[Trial, float] = {
    mean: 0.0,
    skewed_mean: 0.01 * math.exp(0.125),
    share: float(norm.cdf(1.0 / math.sqrt(2.0))),  # E Φ(1 + u) of a standard normal u
    auroc: float(norm.cdf(1.0 / math.sqrt(2.0 + 0.7**2))),
}


@cache
def coverage(trial: Trial, subjects: int, trials: int) -> float:
    """How often the interval holds the truth, with 10 to 40 records a subject."""
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(trials):
        groups = np.repeat(np.arange(subjects), rng.integers(10, 40, subjects))
        low, high = trial(rng, groups, rng.normal(size=subjects)[groups])
        covered += low <= TRUTH[trial] <= high
    return covered / trials


@pytest.mark.parametrize("subjects", [3, 9, 30])
@pytest.mark.parametrize("trial", TRUTH, ids=lambda trial: trial.__name__)
def test_intervals_by_subject_cover(trial: Trial, subjects: int) -> None:
    trials = 400 if trial is auroc else 2000
    least = 0.91 if subjects == 3 or trial is skewed_mean else 0.93
    assert coverage(trial, subjects, trials) >= least


def test_an_interval_of_three_subjects_is_wide_as_students_law_demands() -> None:
    values = np.array([0.2, 0.2, 0.5, 0.5, 0.8, 0.8])
    half = t.ppf(0.975, 2) * 0.3 / math.sqrt(3)  # three subject means with deviation 0.3
    assert mean_interval(values, np.array([0, 0, 1, 1, 2, 2])) == pytest.approx((0.5 - half, 0.5 + half))


def test_one_subject_says_nothing_about_others() -> None:
    subjects, values = np.zeros(50, dtype=int), np.linspace(0.4, 0.6, 50)
    assert share_interval(np.ones(50), subjects) == (0.0, 1.0)
    assert mean_interval(values, subjects, (-1.0, 1.0)) == (-1.0, 1.0)
    assert bootstrap(lambda weights: 0.5, 50, subjects, limits=(0.0, 1.0)) == (0.0, 1.0)
    assert mean_interval(values[:1]) == (-math.inf, math.inf)


def test_subjects_that_all_agree_are_worth_their_number() -> None:
    low, high = share_interval(np.ones(900), np.repeat(np.arange(9), 100))
    quantile = float(t.ppf(0.975, 8))
    assert high == 1.0 and low == pytest.approx(9 / (9 + quantile**2))
    assert wilson(900, 900)[0] > 0.99 > low


def test_records_of_their_own_subjects_count_as_before() -> None:
    hits = (np.arange(40) % 4 > 0).astype(np.float64)
    assert share_interval(hits, np.arange(40)) == share_interval(hits) == wilson(30, 40)


def test_bounded_figures_keep_their_limits() -> None:
    values = np.array([0.0, 0.0, 0.001, 0.2])
    low, high = mean_interval(values, limits=(0.0, 1.0))
    assert 0.0 < low < values.mean() < high < 1.0
    assert mean_interval(values)[0] < 0.0
