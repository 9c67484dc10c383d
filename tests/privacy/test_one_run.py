"""The lower bound of ε from one run: the paper's figures, and never above the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.core.errors import UsageError
from sfumato.privacy.gaussian_mechanism import gaussian_sigma
from sfumato.privacy.one_run_bound import chance_of_luck, one_run_bound


def test_the_papers_figures() -> None:
    """Steinke, Nasr and Jagielski 2023: Appendix D and Section 7."""
    assert one_run_bound(75, 100, 1000, 1e-4) == pytest.approx(0.673, abs=1e-3)
    assert one_run_bound(1439, 1510, 100_000, 1e-5) == pytest.approx(2.675, abs=1e-3)


def test_without_delta_it_is_the_binomial_tail() -> None:
    """All of n right: q^n = 0.05 with q = e^ε/(e^ε + 1)."""
    q = 0.05 ** (1 / 20)
    assert one_run_bound(20, 20, 20, 0.0) == pytest.approx(math.log(q / (1 - q)), abs=1e-9)
    assert chance_of_luck(20, 20, 20, 1.0, 0.0) == pytest.approx((math.e / (1 + math.e)) ** 20)


def test_half_right_shows_nothing() -> None:
    assert one_run_bound(50, 100, 100, 1e-5) == 0.0
    assert one_run_bound(0, 100, 100, 1e-5) == 0.0


def test_more_delta_shows_less() -> None:
    bounds = [one_run_bound(90, 100, 1000, delta) for delta in (0.0, 1e-5, 1e-4)]
    assert bounds == sorted(bounds, reverse=True) and bounds[0] > bounds[-1]


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_on_a_gaussian_mechanism_it_stays_below_the_truth_and_above_nothing(epsilon: float) -> None:
    """One noisy number a canary: 1,000 at once, the 150 highest and lowest of which are guessed at."""
    rng, delta, count, each = np.random.default_rng(0), 1e-5, 1000, 150
    sigma = gaussian_sigma(epsilon, delta, 1.0)
    bounds = []
    for _ in range(40):
        coins = rng.integers(0, 2, count)
        order = np.argsort(coins + sigma * rng.standard_normal(count))
        right = coins[order[-each:]].sum() + (1 - coins[order[:each]]).sum()
        bounds.append(one_run_bound(int(right), 2 * each, count, delta))
    assert max(bounds) < epsilon
    assert np.mean(bounds) > 0.1 * epsilon


@pytest.mark.parametrize("counts", [(3, 2, 5), (1, 6, 5), (0, 0, 5), (-1, 2, 5)])
def test_impossible_counts_are_refused(counts: tuple[int, int, int]) -> None:
    with pytest.raises(UsageError, match="guesses ≤ canaries"):
        one_run_bound(*counts, delta=1e-5)
    with pytest.raises(UsageError, match="delta < 1 and 0 < confidence < 1"):
        one_run_bound(1, 2, 3, delta=1.5)
