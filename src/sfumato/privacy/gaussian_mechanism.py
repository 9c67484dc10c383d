"""The additive Gaussian mechanism z̃ = z + w, w ~ N(0, σ²I): its exact (ε, δ), and the divergence it costs.

The sensitivity is Δ = max|z − z'|₂ over the pairs to be hidden, which the paper calls L. It is finite only if the
latents are bounded, for instance by clipping; those of a VAE are not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.errors import DataError, UsageError, unknown
from sfumato.core.metrics import Values
from sfumato.privacy.divergence import DIVERGENCES, Divergence

_SLACK = 1e-9
"""Relative margin kept below δ for rounding; ``gaussian_delta`` is more accurate than this."""
_LARGEST = 1e100


def theorem_6_1_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return σ = Δ·√(2 log(1.25/δ))/ε, which suffices for (ε, δ) if 0 < ε < 1 (Dwork and Roth, Theorem A.1)."""
    _check("theorem_6_1_sigma", "epsilon", epsilon, 1.0)
    _check("theorem_6_1_sigma", "delta", delta, 1.0)
    _check("theorem_6_1_sigma", "sensitivity", sensitivity)
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def gaussian_delta(epsilon: float, sigma: float, sensitivity: float) -> float:
    """Return the smallest δ for ε ≥ 0, Φ(Δ/2σ − εσ/Δ) − e^ε·Φ(−Δ/2σ − εσ/Δ) (Balle and Wang 2018, Theorem 8)."""
    _check("gaussian_delta", "epsilon", epsilon, zero=True)
    _check("gaussian_delta", "sigma", sigma)
    _check("gaussian_delta", "sensitivity", sensitivity)
    return _delta(epsilon, sensitivity / sigma)


def gaussian_epsilon(sigma: float, delta: float, sensitivity: float) -> float:
    """Return the smallest ε ≥ 0 for which N(0, σ²I) is (ε, δ)-private, rounded up."""
    _check("gaussian_epsilon", "sigma", sigma)
    _check("gaussian_epsilon", "delta", delta, 1.0)
    _check("gaussian_epsilon", "sensitivity", sensitivity)
    ratio, goal = sensitivity / sigma, delta * (1 - _SLACK)
    if _delta(0.0, ratio) <= goal:
        return 0.0
    return _turn(lambda epsilon: _delta(epsilon, ratio) > goal, "gaussian_epsilon", "sigma", sigma)[1]


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the smallest σ for which N(0, σ²I) is (ε, δ)-private, ε ≥ 0, rounded up."""
    _check("gaussian_sigma", "epsilon", epsilon, zero=True)
    _check("gaussian_sigma", "delta", delta, 1.0)
    _check("gaussian_sigma", "sensitivity", sensitivity)
    goal = delta * (1 - _SLACK)
    units = _turn(lambda sigma: _delta(epsilon, 1 / sigma) > goal, "gaussian_sigma", "delta", delta)[1]
    return math.nextafter(units * sensitivity, math.inf)


def noise_divergence(sigma: float, variance: npt.NDArray[Any], kind: Divergence) -> Values:
    """Return the divergence of N(μ, Σ₁ + σ²I) from N(μ, Σ₁) for each record: variance (N, d) → (N,).

    This is ``divergence`` for shift 0 and factor σI. With λ = σ²/variance: KL = ½Σ(λ − log(1 + λ)), reverse KL =
    ½Σ(log(1 + λ) − λ/(1 + λ)), χ² = ½[Π(1 − λ²)^-½ − 1] or +∞ if any λ ≥ 1, norm = ½dσ²,
    mahalanobis = Σλ.
    """
    _check("noise_divergence", "sigma", sigma, _LARGEST, zero=True)
    return _cost(sigma, _variances("noise_divergence", variance, kind), kind)


def sigma_for_budget(budget: float, variance: npt.NDArray[Any], kind: Divergence) -> float:
    """Return the σ whose mean ``noise_divergence`` over the records (N, d) equals the budget, rounded down."""
    _check("sigma_for_budget", "budget", budget, zero=True)
    values = _variances("sigma_for_budget", variance, kind)
    if budget == 0:
        return 0.0
    return _turn(lambda sigma: bool(_cost(sigma, values, kind).mean() <= budget), "sigma_for_budget", "budget", budget)[
        0
    ]


def budget_needed(
    epsilon: float, delta: float, sensitivity: float, variance: npt.NDArray[Any], kind: Divergence
) -> float:
    """Return the smallest budget (a mean over the records) within which the Gaussian mechanism can reach (ε, δ).

    This is the paper's Proposition 1 (Eq. 17), for any ε, with the exact divergence and the exact σ of
    ``gaussian_sigma``. The printed bound does not hold: the step from Eq. 15 to 16 replaces log det Σ₁ = Σ log σ²ⱼ by
    Σσ²ⱼ, so Eq. 16, ½σ²Σ(1/σ²ⱼ − 1), is not the KL divergence; it is 0 for unit variances and negative above, whatever
    the noise. For χ² the result is infinite once σ² reaches a variance: no χ² budget allows that much noise.

    The budget permits this (ε, δ) but does not prove it: only N(0, σ²I) with that σ has it. A learned filter with the
    same budget may spend it on a shift, and has no ε.
    """
    values = _variances("budget_needed", variance, kind)
    return float(_cost(gaussian_sigma(epsilon, delta, sensitivity), values, kind).mean())


def _delta(epsilon: float, ratio: float) -> float:
    """Return δ for Δ/σ = ratio: as e^ε·φ(b) = φ(a), φ(a) times a difference of Mills ratios, exact in the tails."""
    from scipy.special import erfcx, log_ndtr

    middle = epsilon / ratio
    a, b = ratio / 2 - middle, -ratio / 2 - middle
    if ratio < 4e-5:  # a and b nearly coincide: integrate Φ(−t)/φ(t) between them by the midpoint rule
        mills = math.sqrt(math.pi / 2) * erfcx(middle / math.sqrt(2))
        return float(math.exp(-a * a / 2) / math.sqrt(2 * math.pi) * ratio * (1 - middle * mills))
    if a > 0:
        return float(np.exp(log_ndtr(a)) - np.exp(epsilon + log_ndtr(b)))
    return float(math.exp(-a * a / 2) * (erfcx(-a / math.sqrt(2)) - erfcx(-b / math.sqrt(2))) / 2)


def _cost(sigma: float, variance: Values, kind: Divergence) -> Values:
    if kind == "norm":
        return np.full(len(variance), variance.shape[1] * sigma**2 / 2)
    lam = sigma**2 / variance
    if kind == "mahalanobis":
        return np.asarray(lam.sum(axis=1))
    if kind == "chi2":
        exists = np.asarray((lam < 1).all(axis=1))
        log = -np.log1p(-(np.where(exists[:, None], lam, 0.0) ** 2)).sum(axis=1) / 2
        return np.where(exists, np.expm1(np.minimum(log, 700.0)) / 2, np.inf)
    few = np.minimum(lam, 1e-3)
    series = few**2 * (1 / 2 - few * (1 / 3 - few * (1 / 4 - few / 5)))  # λ − log(1 + λ) without cancellation
    if kind == "kl":
        each = np.where(lam < 1e-3, series, lam - np.log1p(lam))
    else:
        each = np.where(lam < 1e-3, few**2 / (1 + few) - series, np.log1p(lam) - lam / (1 + lam))
    return np.asarray(each.sum(axis=1) / 2)


def _turn(holds: Callable[[float], bool], owner: str, parameter: str, value: float) -> tuple[float, float]:
    """Bisect for two adjacent floats such that ``holds`` is true up to the first and false from the second on."""
    low, high = 0.0, 1.0
    while holds(high):
        low, high = high, high * 2
        if high > _LARGEST:
            raise UsageError(f"{owner}: the result for {parameter} = {value!r} lies above {_LARGEST:g}.")
    while low == 0.0 and high > 1 / _LARGEST and not holds(high / 2):
        high /= 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def _check(owner: str, parameter: str, value: float, high: float = math.inf, *, zero: bool = False) -> None:
    """Raise unless 0 < value < high (0 ≤ value with ``zero``)."""
    if not ((value >= 0 if zero else value > 0) and value < high):
        wanted = f"{'0 ≤' if zero else '0 <'} {parameter} < {high:g}"
        raise UsageError(f"{owner}: {parameter} must satisfy {wanted}, got {value!r}.")


def _variances(owner: str, variance: npt.NDArray[Any], kind: Divergence) -> Values:
    if kind not in DIVERGENCES:
        raise unknown("divergence", kind, DIVERGENCES)
    values = np.asarray(variance, dtype=np.float64)
    if values.ndim != 2 or values.size == 0:
        raise UsageError(f"{owner}: variance must be (N, d), got {values.shape}.")
    if not (np.isfinite(values).all() and values.min() > 0):
        raise DataError(f"{owner}: variance must be finite and above 0, got {values.min()!r} … {values.max()!r}.")
    return values
