"""The divergences against torch's, against Monte Carlo, and against what the paper prints."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import MultivariateNormal, kl_divergence

from sfumato.core.errors import UsageError
from sfumato.privacy.divergence import DIVERGENCES, Divergence, divergence

every_kind = pytest.mark.parametrize("kind", DIVERGENCES)


def perturbation(seed: int, d: int = 3, r: int = 2, noise: float = 0.2) -> tuple[Tensor, Tensor, Tensor]:
    """A shift, a variance and a factor in float64; every eigenvalue of M stays below noise²·d·r/0.2."""
    rng = torch.Generator().manual_seed(seed)
    shift = 0.3 * torch.randn(d, generator=rng, dtype=torch.float64)
    variance = 0.2 + torch.rand(d, generator=rng, dtype=torch.float64)
    factor = noise * (2 * torch.rand(d, r, generator=rng, dtype=torch.float64) - 1)
    return shift, variance, factor


def gaussians(shift: Tensor, variance: Tensor, factor: Tensor) -> tuple[MultivariateNormal, MultivariateNormal]:
    """q_ψ and q_φ, with μ₁ = 0."""
    raw = torch.diag(variance)
    zero = torch.zeros_like(shift)
    return MultivariateNormal(shift, raw + factor @ factor.mT), MultivariateNormal(zero, raw)


def monte_carlo(
    kind: Divergence, shift: Tensor, variance: Tensor, factor: Tensor, n: int = 40_000
) -> tuple[float, float]:
    """The definition's expectation, estimated, with its standard error."""
    new, old = gaussians(shift, variance, factor)
    torch.manual_seed(0)
    if kind == "norm":
        values = (shift + torch.randn(n, factor.shape[1], dtype=shift.dtype) @ factor.mT).square().sum(-1) / 2
    elif kind == "mahalanobis":
        step = shift + torch.randn(n, factor.shape[1], dtype=shift.dtype) @ factor.mT
        values = (step.square() / variance).sum(-1)
    else:
        z = (new if kind == "kl" else old).sample((n,))
        log = new.log_prob(z) - old.log_prob(z)
        values = {"kl": log, "reverse-kl": -log, "chi2": (log.exp() - 1).square() / 2}[kind]
    return float(values.mean()), float(values.std()) / math.sqrt(n)


@given(seed=st.integers(0, 10**6), d=st.integers(1, 5), r=st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_both_kls_agree_with_torch(seed: int, d: int, r: int) -> None:
    case = perturbation(seed, d, r, noise=2.0)
    new, old = gaussians(*case)
    assert float(divergence("kl", *case)) == pytest.approx(float(kl_divergence(new, old)), rel=1e-8, abs=1e-12)
    assert float(divergence("reverse-kl", *case)) == pytest.approx(float(kl_divergence(old, new)), rel=1e-8, abs=1e-12)


@every_kind
@given(seed=st.integers(0, 10**6), d=st.integers(1, 3), r=st.integers(1, 3))
@settings(max_examples=8, deadline=None)
def test_divergence_is_the_mean_that_defines_it(kind: Divergence, seed: int, d: int, r: int) -> None:
    case = perturbation(seed, d, r, noise=0.1)
    mean, error = monte_carlo(kind, *case)
    assert abs(float(divergence(kind, *case)) - mean) < 6 * error + 1e-9


def test_chi2_in_one_dimension_is_the_integral_of_its_definition() -> None:
    case = perturbation(3, 1, 2, noise=0.25)
    new, old = gaussians(*case)
    z = torch.linspace(-12, 12, 200_001, dtype=torch.float64)[:, None]
    log_new, log_old = new.log_prob(z), old.log_prob(z)
    integral = torch.trapezoid((2 * log_new - log_old).exp(), z[:, 0])
    assert float(divergence("chi2", *case)) == pytest.approx(float(integral - 1) / 2, rel=1e-7)


@pytest.mark.parametrize("length", [0.2, 0.5, 0.8])
def test_printed_chi2_of_equal_covariances_is_not_the_divergence(length: float) -> None:
    """§6.2.1 prints ½(e^-s − 1)²; the definition's mean is ½(e^2s − 1)."""
    shift, variance = length * torch.ones(2, dtype=torch.float64), torch.tensor([0.5, 2.0], dtype=torch.float64)
    case = shift, variance, torch.zeros(2, 1, dtype=torch.float64)
    s = float((shift**2 / variance).sum()) / 2
    exact, printed = math.expm1(2 * s) / 2, math.expm1(-s) ** 2 / 2
    assert float(divergence("chi2", *case)) == pytest.approx(exact)
    mean, error = monte_carlo("chi2", *case, n=400_000)
    assert abs(exact - mean) < 5 * error
    assert abs(printed - mean) > 20 * error


def test_chi2_grows_past_every_bound_where_the_printed_one_ends_at_a_half() -> None:
    variance, factor = torch.ones(1), torch.zeros(1, 1)
    values = [float(divergence("chi2", torch.tensor([far]), variance, factor)) for far in (1.0, 2.0, 4.0)]
    assert values == pytest.approx([math.expm1(far**2) / 2 for far in (1.0, 2.0, 4.0)], rel=1e-5)


def test_the_papers_constraint_is_twice_the_kl_of_a_shift_alone() -> None:
    """Eq. 10: KL = ½‖Δμ‖²_{Σ⁻¹} for equal covariances; its implementation bounds the norm without the half."""
    shift, variance, factor = perturbation(1)
    alone = shift, variance, 0 * factor
    assert float(divergence("mahalanobis", *alone)) == pytest.approx(2 * float(divergence("kl", *alone)))
    ones = shift, torch.ones_like(variance), factor
    assert float(divergence("mahalanobis", *ones)) == pytest.approx(2 * float(divergence("norm", *ones)))


@every_kind
def test_no_perturbation_costs_nothing(kind: Divergence) -> None:
    assert float(divergence(kind, torch.zeros(4), torch.full((4,), 1e-6), torch.zeros(4, 2))) == 0.0


@every_kind
@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_cost_grows_with_the_common_scale_of_shift_and_noise(kind: Divergence, seed: int) -> None:
    shift, variance, factor = perturbation(seed)
    scale = torch.linspace(0, 4, 30, dtype=torch.float64)
    values = divergence(kind, scale[:, None] * shift, variance, scale[:, None, None] * factor).tolist()
    assert all(low < high or low == high == math.inf for low, high in pairwise(values))


def test_chi2_is_infinite_exactly_when_the_noise_reaches_the_variance() -> None:
    variance = torch.tensor([0.25, 1.0])
    below, at, above = (torch.tensor([[size], [0.0]]) for size in (0.4999, 0.5, 0.6))
    assert float(divergence("chi2", torch.zeros(2), variance, below)) < 30
    assert float(divergence("chi2", torch.zeros(2), variance, at)) == math.inf
    assert float(divergence("chi2", torch.zeros(2), variance, above)) == math.inf
    assert float(divergence("chi2", torch.full((2,), 100.0), variance, below)) == math.inf


@every_kind
def test_leading_dimensions_broadcast_as_one_by_one(kind: Divergence) -> None:
    rng = torch.Generator().manual_seed(0)
    shift, variance = 0.1 * torch.randn(2, 5, 4, generator=rng), 0.5 + torch.rand(5, 4, generator=rng)
    factor = 0.1 * torch.randn(2, 1, 4, 3, generator=rng)
    values = divergence(kind, shift, variance, factor)
    assert values.shape == (2, 5) and values.dtype == torch.float32
    for filter_ in range(2):
        for record in range(5):
            alone = divergence(kind, shift[filter_, record], variance[record], factor[filter_, 0])
            assert float(values[filter_, record]) == pytest.approx(float(alone), rel=1e-5)
    assert divergence(kind, shift[0, 0], variance, factor[0, 0]).shape == (5,)


@every_kind
def test_gradient_is_finite_for_tiny_variances_and_for_infinite_costs(kind: Divergence) -> None:
    rng = torch.Generator().manual_seed(0)
    variance = torch.cat([torch.full((4, 3), 1e-6), torch.rand(4, 3, generator=rng)])
    shift = torch.randn(8, 3, generator=rng).requires_grad_()
    factor = torch.randn(3, 3, generator=rng).requires_grad_()
    size = torch.tensor([1.0, 1.0, 1e-4, 1e-4, 1.0, 1.0, 1e-2, 1e-2])
    values = divergence(kind, size[:, None] * shift, variance, size[:, None, None] * factor)
    assert values.isfinite().sum() == (4 if kind == "chi2" else 8)
    torch.where(values.isfinite(), values, 0.0).sum().backward()
    assert not values.isnan().any() and (values >= 0).all()
    assert shift.grad is not None and shift.grad.isfinite().all()
    assert factor.grad is not None and factor.grad.isfinite().all()


@every_kind
def test_gradient_agrees_with_differences(kind: Divergence) -> None:
    shift, variance, factor = (part.requires_grad_() for part in perturbation(1))
    assert torch.autograd.gradcheck(lambda *parts: divergence(kind, *parts), (shift, variance, factor))


@pytest.mark.parametrize("variance", [1e-6, 1e-4, 1.0])
def test_small_variances_lose_no_accuracy(variance: float) -> None:
    """One number of each: float32 in, the closed form in one dimension out."""
    shift, size = 0.5, 2.0
    lam, square = size**2 / variance, shift**2 / variance
    case = torch.tensor([shift]), torch.tensor([variance]), torch.tensor([[size]])
    assert float(divergence("kl", *case)) == pytest.approx((lam + square - math.log1p(lam)) / 2, rel=1e-5)
    reverse = (math.log1p(lam) - lam / (1 + lam) + square / (1 + lam)) / 2
    assert float(divergence("reverse-kl", *case)) == pytest.approx(reverse, rel=1e-5)


@pytest.mark.parametrize("kind", ["kl", "reverse-kl", "chi2"])
def test_mean_over_random_shifts_bounds_the_mixture(kind: Divergence) -> None:
    variance, factor = torch.tensor([0.5]).double(), torch.tensor([[0.3]]).double()
    shifts = torch.tensor([[-0.6], [0.4], [0.9]]).double()
    z = torch.linspace(-15, 15, 100_001).double()[:, None]
    parts = torch.stack([gaussians(shift, variance, factor)[0].log_prob(z) for shift in shifts])
    new = torch.logsumexp(parts, 0) - math.log(3)
    old = gaussians(shifts[0], variance, factor)[1].log_prob(z)
    integrand = {
        "kl": new.exp() * (new - old),
        "reverse-kl": old.exp() * (old - new),
        "chi2": (2 * new - old).exp() / 2 - new.exp() + old.exp() / 2,
    }[kind]
    mixture = float(torch.trapezoid(integrand, z[:, 0]))
    assert 0 < mixture < float(divergence(kind, shifts, variance, factor).mean())


def test_mistyped_kind_and_unequal_shapes_say_so() -> None:
    with pytest.raises(UsageError, match="did you mean 'chi2'"):
        divergence("chi", torch.zeros(2), torch.ones(2), torch.zeros(2, 1))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="must agree in d"):
        divergence("kl", torch.zeros(2), torch.ones(3), torch.zeros(2, 1))
