"""The lower bound of ε from counted hits, against values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.core.errors import UsageError
from sfumato.privacy.gaussian_mechanism import gaussian_epsilon
from sfumato.privacy.lower_bounds import epsilon_lower_bound, lower_share, upper_share


def test_all_hits_and_no_alarm_give_the_closed_form() -> None:
    """n of n: p_low = r^(1/n); 0 of n: p_high = 1 − r^(1/n); here r = 0.025 and n = 2000."""
    edge = 0.025 ** (1 / 2000)
    by_hand = math.log((edge - 1e-5) / (1 - edge))
    assert by_hand == pytest.approx(6.294, abs=1e-3)
    assert epsilon_lower_bound(2000, 2000, 0, 2000, 1e-5) == pytest.approx(by_hand, rel=1e-9)


def test_one_run_proves_almost_nothing() -> None:
    """TPR ≥ 0.25 and FPR ≤ 0.75 at confidence 0.5 (r = 0.25, n = 1): log(0.25/0.75) < 0 both ways."""
    assert epsilon_lower_bound(1, 1, 0, 1, 0.0, confidence=0.5) == 0.0


def test_two_hits_of_two_at_even_confidence() -> None:
    """r = 0.25: TPR ≥ √0.25 = 0.5, FPR ≤ 1 − 0.5 = 0.5: ratio exactly 1. At r = 0.36 it is 0.6/0.4 = 1.5."""
    assert epsilon_lower_bound(2, 2, 0, 2, 0.0, confidence=0.5) == pytest.approx(0.0, abs=1e-12)
    assert epsilon_lower_bound(2, 2, 0, 2, 0.0, confidence=0.28) == pytest.approx(math.log(1.5))
    assert epsilon_lower_bound(2, 2, 0, 2, 0.1, confidence=0.28) == pytest.approx(math.log(0.5 / 0.4))


def test_limits_are_those_of_the_binomial_tails() -> None:
    low, high = lower_share(37, 100, 0.025), upper_share(37, 100, 0.025)
    assert binom.sf(36, 100, low) == pytest.approx(0.025)
    assert binom.cdf(37, 100, high) == pytest.approx(0.025)


def test_both_directions_count() -> None:
    """A test that never alarms falsely and one that never misses are equally telling."""
    quiet, thorough = epsilon_lower_bound(300, 1000, 0, 1000, 1e-5), epsilon_lower_bound(1000, 1000, 700, 1000, 1e-5)
    assert quiet == pytest.approx(thorough)
    assert quiet > 4.0


def test_more_delta_proves_less() -> None:
    bounds = [epsilon_lower_bound(900, 1000, 100, 1000, delta) for delta in (0.0, 1e-3, 0.1)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] > bounds[-1]


def test_a_delta_that_allows_everything_proves_nothing() -> None:
    assert epsilon_lower_bound(5, 1000, 0, 1000, 0.5) == 0.0
    assert epsilon_lower_bound(0, 10, 10, 10, 0.0) == 0.0


def test_the_bound_stays_below_the_truth_of_the_gaussian_mechanism() -> None:
    """1 + N(0, 1) against N(0, 1) with a threshold fixed before: at most 5 % may lie above ε; here none of 200 does."""
    rng, truth = np.random.default_rng(0), gaussian_epsilon(1.0, 1e-5, 1.0)
    for _ in range(200):
        hits, alarms = (rng.normal(mean, 1.0, 1000) > 1.5 for mean in (1.0, 0.0))
        assert epsilon_lower_bound(int(hits.sum()), 1000, int(alarms.sum()), 1000, 1e-5) < truth


@pytest.mark.parametrize(
    ("counts", "word"),
    [((5, 4, 0, 4), "true_positives"), ((0, 4, -1, 4), "false_positives"), ((0, 0, 0, 4), "true_positives")],
)
def test_impossible_counts_are_refused(counts: tuple[int, int, int, int], word: str) -> None:
    with pytest.raises(UsageError, match=word):
        epsilon_lower_bound(*counts, delta=1e-5)


@pytest.mark.parametrize("wrong", [{"delta": 1.0}, {"delta": 0.1, "confidence": 1.0}])
def test_impossible_levels_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=r"delta|confidence"):
        epsilon_lower_bound(1, 2, 1, 2, **wrong)
