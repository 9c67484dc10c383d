"""The Gaussian mechanism against integrals, and the paper's Proposition 1 against the exact divergence."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from sfumato.core.errors import DataError, UsageError
from sfumato.privacy.divergence import DIVERGENCES, Divergence, divergence
from sfumato.privacy.gaussian_mechanism import (
    budget_needed,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
    noise_divergence,
    sigma_for_budget,
    theorem_6_1_sigma,
)

every_kind = pytest.mark.parametrize("kind", DIVERGENCES)
SPREADS = np.random.default_rng(0).uniform(0.02, 1.0, (30, 10))
"""Variances like those of a VAE's latents."""


def printed_divergence(sigma: float, variance: np.ndarray) -> float:
    """The paper's Eq. 16, which its Proposition 1 (Eq. 17) is made of."""
    return float(sigma**2 / 2 * (1 / variance - 1).sum())


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
def test_delta_is_the_mass_that_the_ratio_leaves(epsilon: float, sigma: float) -> None:
    """δ = ∫(p(z − Δ) − e^ε·p(z))₊ dz, the definition."""

    def excess(z: float) -> float:
        return max(0.0, norm.pdf(z, 1, sigma) - math.exp(epsilon) * norm.pdf(z, 0, sigma))

    start = epsilon * sigma**2 + 0.5  # the densities' ratio is e^ε there
    integral = quad(excess, start, start + 12 * sigma, epsabs=1e-14, epsrel=1e-11, limit=200)[0]
    assert gaussian_delta(epsilon, sigma, 1.0) == pytest.approx(integral, rel=1e-8, abs=1e-13)


def test_delta_has_its_known_values() -> None:
    assert gaussian_delta(0.0, 1.0, 1.0) == pytest.approx(2 * norm.cdf(0.5) - 1)  # total variation
    assert gaussian_delta(1.0, 1.0, 1.0) == pytest.approx(0.126936737507, rel=1e-9)  # Balle and Wang's formula
    assert gaussian_delta(2.0, 3.0, 6.0) == pytest.approx(gaussian_delta(2.0, 0.5, 1.0))  # only Δ/σ counts


def test_delta_stays_exact_deep_in_the_tail_and_for_almost_no_signal() -> None:
    assert gaussian_delta(400.0, 0.05, 1.0) == pytest.approx(norm.cdf(-10) - math.exp(400 + norm.logcdf(-30)), rel=1e-9)
    assert gaussian_delta(0.0, 1e7, 1.0) == pytest.approx(1e-7 / math.sqrt(2 * math.pi), rel=1e-9)
    assert gaussian_delta(50.0, 1e4, 1.0) == 0.0
    assert gaussian_delta(1.0, 1e-6, 1.0) == 1.0


def test_delta_joins_where_its_formula_changes() -> None:
    for ratio in (4e-5, 1.0):
        epsilon = ratio**2 / 2 if ratio == 1.0 else 1e-5
        sides = [gaussian_delta(epsilon, factor / ratio, 1.0) for factor in (1 - 1e-9, 1 + 1e-9)]
        assert sides[0] == pytest.approx(sides[1], rel=1e-7)


@given(epsilon=st.floats(1e-3, 0.999), log_delta=st.floats(-12, -0.05), sensitivity=st.floats(1e-3, 1e3))
@settings(max_examples=60, deadline=None)
def test_theorem_6_1_never_asks_for_less_than_the_exact_sigma(
    epsilon: float, log_delta: float, sensitivity: float
) -> None:
    delta = 10**log_delta
    assert theorem_6_1_sigma(epsilon, delta, sensitivity) >= gaussian_sigma(epsilon, delta, sensitivity)


@given(epsilon=st.floats(0.0, 50.0), log_delta=st.floats(-15, -0.05), sensitivity=st.floats(1e-3, 1e3))
@settings(max_examples=60, deadline=None)
def test_sigma_is_enough_and_hardly_more(epsilon: float, log_delta: float, sensitivity: float) -> None:
    delta = 10**log_delta
    sigma = gaussian_sigma(epsilon, delta, sensitivity)
    assert gaussian_delta(epsilon, sigma, sensitivity) <= delta
    assert gaussian_delta(epsilon, sigma * (1 - 1e-7), sensitivity) > delta


@given(ratio=st.floats(0.05, 20.0), log_delta=st.floats(-15, -0.05))
@settings(max_examples=60, deadline=None)
def test_epsilon_is_an_upper_bound_and_hardly_more(ratio: float, log_delta: float) -> None:
    delta = 10**log_delta
    epsilon = gaussian_epsilon(ratio, delta, 1.0)
    assert gaussian_delta(epsilon, ratio, 1.0) <= delta
    if epsilon > 1e-6:
        assert gaussian_delta(epsilon * (1 - 1e-6), ratio, 1.0) > delta


def test_epsilon_and_sigma_undo_each_other() -> None:
    for epsilon in (0.1, 1.0, 8.0):
        sigma = gaussian_sigma(epsilon, 1e-5, 2.0)
        assert gaussian_epsilon(sigma, 1e-5, 2.0) == pytest.approx(epsilon, rel=1e-7)
    assert gaussian_epsilon(1000.0, 0.01, 1.0) == 0.0


@every_kind
def test_noise_divergence_is_the_divergence_of_the_scaled_identity(kind: Divergence) -> None:
    for sigma in (0.0, 1e-3, 0.1, 0.13):
        factor = sigma * torch.eye(10, dtype=torch.float64)
        expected = divergence(kind, torch.zeros(10).double(), torch.from_numpy(SPREADS), factor)
        assert noise_divergence(sigma, SPREADS, kind) == pytest.approx(expected.numpy(), rel=1e-7, abs=1e-15)


def test_noise_divergence_is_exact_for_almost_no_noise() -> None:
    one = np.ones((1, 1))
    for lam in (1e-12, 1e-6, 0.99e-3, 1.01e-3):
        half_square = lam**2 / 4
        assert noise_divergence(math.sqrt(lam), one, "kl")[0] == pytest.approx(
            half_square * (1 - 2 * lam / 3), rel=1e-5
        )
        reverse = half_square * (1 - 4 * lam / 3)
        assert noise_divergence(math.sqrt(lam), one, "reverse-kl")[0] == pytest.approx(reverse, rel=1e-5)


@every_kind
@pytest.mark.parametrize("budget", [1e-9, 0.01, 1.0, 30.0])
def test_sigma_for_budget_spends_the_budget_and_never_exceeds_it(kind: Divergence, budget: float) -> None:
    sigma = sigma_for_budget(budget, SPREADS, kind)
    spent = noise_divergence(sigma, SPREADS, kind).mean()
    assert spent <= budget
    assert spent == pytest.approx(budget, rel=1e-6)
    assert noise_divergence(math.nextafter(sigma, 1e9), SPREADS, kind).mean() > budget


def test_no_budget_allows_no_noise_and_chi2_allows_none_above_the_smallest_variance() -> None:
    assert sigma_for_budget(0.0, SPREADS, "kl") == 0.0
    assert sigma_for_budget(1e6, SPREADS, "chi2") ** 2 < SPREADS.min()
    assert budget_needed(0.5, 1e-5, 1.0, SPREADS, "chi2") == math.inf


@pytest.mark.parametrize("kind", ["kl", "reverse-kl", "norm", "mahalanobis"])
def test_budget_needed_buys_exactly_the_epsilon(kind: Divergence) -> None:
    budget = budget_needed(2.0, 1e-5, 0.5, SPREADS, kind)
    sigma = sigma_for_budget(budget, SPREADS, kind)
    assert gaussian_epsilon(sigma, 1e-5, 0.5) == pytest.approx(2.0, rel=1e-5)


def test_printed_eq_16_is_not_the_divergence() -> None:
    """Between Eq. 15 and 16 log det Σ turns into a sum of variances: the error is ½Σ(log(1 + σ²/v) − σ²)."""
    variance = np.linspace(0.02, 1.0, 10)
    for sigma, sign in ((0.1, 1), (1.0, 1), (5.0, -1)):
        exact, printed = noise_divergence(sigma, variance[None], "kl")[0], printed_divergence(sigma, variance)
        error = (np.log1p(sigma**2 / variance) - sigma**2).sum() / 2
        assert printed - exact == pytest.approx(error, rel=1e-9)
        assert sign * error > 0  # too much for little noise, too little for much
    exact, printed = noise_divergence(0.1, variance[None], "kl")[0], printed_divergence(0.1, variance)
    assert printed > 4 * exact


def test_printed_proposition_1_asks_for_nothing_where_variances_are_one() -> None:
    ones = np.ones((1, 10))
    assert printed_divergence(theorem_6_1_sigma(0.5, 1e-5, 1.0), ones) == 0.0
    assert printed_divergence(theorem_6_1_sigma(0.5, 1e-5, 1.0), 2 * ones) < 0.0
    assert budget_needed(0.5, 1e-5, 1.0, ones, "kl") > 100.0
    assert budget_needed(0.5, 1e-5, 1.0, 2 * ones, "kl") > 50.0


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0, math.nan])
def test_theorem_6_1_refuses_what_it_does_not_cover(epsilon: float) -> None:
    with pytest.raises(UsageError, match=f"epsilon must satisfy 0 < epsilon < 1, got {epsilon}"):
        theorem_6_1_sigma(epsilon, 1e-5, 1.0)


def test_impossible_parameters_are_named_with_their_value() -> None:
    with pytest.raises(UsageError, match=r"delta must satisfy 0 < delta < 1, got 1\.5"):
        gaussian_sigma(1.0, 1.5, 1.0)
    with pytest.raises(UsageError, match=r"sensitivity must .* got inf"):
        gaussian_epsilon(1.0, 1e-5, math.inf)
    with pytest.raises(UsageError, match=r"sigma must .* got 0\.0"):
        gaussian_delta(1.0, 0.0, 1.0)
    with pytest.raises(UsageError, match=r"budget must .* got -1\.0"):
        sigma_for_budget(-1.0, SPREADS, "kl")
    with pytest.raises(UsageError, match="unknown divergence 'KL'"):
        sigma_for_budget(1.0, SPREADS, "KL")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="variance must be"):
        noise_divergence(1.0, SPREADS[0], "kl")
    with pytest.raises(DataError, match="variance must be finite and above 0"):
        budget_needed(1.0, 1e-5, 1.0, np.zeros((2, 2)), "kl")
    with pytest.raises(UsageError, match=r"budget = 1000000\.0 lies above"):
        sigma_for_budget(1e6, np.ones((1, 1)), "reverse-kl")
