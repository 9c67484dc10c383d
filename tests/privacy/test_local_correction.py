"""Mutual information with local non-uniformity correction, against Gaussians whose information is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import digamma

from sfumato.core.errors import UsageError
from sfumato.privacy.local_correction import corrected_information, multi_information
from sfumato.privacy.mutual_information import information, mutual_information


def pair(rho: float, n: int = 1000) -> np.ndarray:
    z = np.random.default_rng(0).normal(size=(n, 2))
    return np.column_stack([z[:, 0], rho * z[:, 0] + math.sqrt(1 - rho**2) * z[:, 1]])


def plain(columns: np.ndarray, k: int) -> float:
    """The same without the correction, with an N×N table."""
    distance = np.abs(columns[:, None] - columns[None])  # (N, N, d)
    n, d = columns.shape
    nearest = np.argsort(distance.max(axis=2), axis=1)[:, 1 : k + 1]
    reach = np.take_along_axis(distance, nearest[:, :, None], axis=1).max(axis=1)  # (N, d)
    inside = (distance <= reach[:, None]).sum(axis=1) - 1
    return float(digamma(k) - (d - 1) / k + (d - 1) * digamma(n) - digamma(inside).sum(axis=1).mean())


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 0.999])
def test_correlated_gaussians_have_their_information(rho: float) -> None:
    assert multi_information(pair(rho)).mean() == pytest.approx(-math.log(1 - rho**2) / 2, abs=0.12)


def test_the_correction_finds_what_the_plain_estimator_misses_in_strong_dependence() -> None:
    columns = pair(0.999999, 300)
    truth = -math.log(1 - 0.999999**2) / 2  # 6.56
    assert plain(columns, 5) < truth - 1.0
    assert multi_information(columns).mean() > truth - 0.6


def test_three_gaussians_have_the_determinant_of_their_correlation() -> None:
    z = np.random.default_rng(1).normal(size=(2000, 3))
    z[:, 2] = 0.8 * z[:, 0] + 0.6 * z[:, 2]
    assert multi_information(z, neighbours=6).mean() == pytest.approx(-math.log(1 - 0.8**2) / 2, abs=0.06)


def test_a_label_of_round_clouds_has_the_information_of_the_other_estimator() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1500)
    x = rng.normal(size=(1500, 3))
    x[:, 0] += 2 * y - 1
    assert corrected_information(x, y).mean() == pytest.approx(mutual_information(x, y).mean(), abs=0.03)


def test_a_label_that_says_nothing_of_a_thin_sheet_shares_nothing() -> None:
    """Both entropies are corrected: the correction of one alone would be taken for information."""
    rng = np.random.default_rng(0)
    along = 3 * rng.normal(size=1500)
    x = np.column_stack([along, along + 0.01 * rng.normal(size=1500)])
    assert abs(corrected_information(x, rng.integers(0, 2, 1500)).mean()) < 0.1


def test_the_interval_holds_the_estimate_and_too_few_neighbours_are_refused() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 2)), rng.integers(0, 3, 300)
    value, (low, high) = information(x, y, terms=corrected_information)
    assert low < value < high
    with pytest.raises(UsageError, match="at least d = 4"):
        multi_information(rng.normal(size=(50, 4)), neighbours=3)


def test_a_label_of_many_classes_that_says_nothing_shares_little_in_many_dimensions() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(800, 10)), rng.integers(0, 10, 800)
    assert abs(corrected_information(x, y).mean()) < 0.25
