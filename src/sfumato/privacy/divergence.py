"""The divergence by which a filter moves a Gaussian latent, exact and differentiable: the filter's budget.

A latent z ~ q_φ = N(μ₁, Σ₁) with diagonal Σ₁ is released as z̃ = z + shift + factor·ε with ε ~ N(0, I), which makes
z̃ ~ q_ψ = N(μ₁ + shift, Σ₁ + factor·factorᵀ). The f-divergences depend only on the whitened perturbation
w = Σ₁^-½·shift and M = W·Wᵀ with W = Σ₁^-½·factor.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from sfumato.core.errors import UsageError, unknown

Divergence = Literal["kl", "reverse-kl", "chi2", "norm", "mahalanobis"]
DIVERGENCES: tuple[Divergence, ...] = get_args(Divergence)


def divergence(kind: Divergence, shift: Tensor, variance: Tensor, factor: Tensor) -> Tensor:
    """Return the divergence of q_ψ from q_φ for shift (…, d), variance (…, d) > 0 and factor (…, d, r): (…).

    The KL divergences are in nats.

    - ``kl``: KL(q_ψ‖q_φ) = ½[tr M + |w|² − log det(I + M)]
    - ``reverse-kl``: KL(q_φ‖q_ψ) = ½[log det(I + M) − tr M(I + M)⁻¹ + wᵀ(I + M)⁻¹w]
    - ``chi2``: ½E_φ[(q_ψ/q_φ − 1)²] = ½[det(I − M²)^-½·exp(wᵀ(I − M)⁻¹w) − 1], and +∞ (with gradient 0) unless every
      eigenvalue of M is below 1: noise as large as the latent's own spread is infinitely far from it. Values above
      e^60 are treated as infinite, too.
    - ``norm``: ½E|z̃ − z|² = ½(|shift|² + |factor|²_F), the paper's norm ball, and its Eq. 10 for Σ = I
    - ``mahalanobis``: E|z̃ − z|²_{Σ₁⁻¹} = |w|² + tr M, which the paper prints as its implementation (end of §6.2.1),
      ‖μ₁(g_e(x)) − μ₂(g_f(g_e(x), ε, y))‖²_{σ₁⁻¹} ≤ b, with ε drawn

    All five are 0 without a perturbation and grow with t for (t·shift, t·factor).

    The three f-divergences are jointly convex. So if the shift is itself random given the record (because it depends on
    a label), the mean of this value over the shifts is an upper bound on the divergence of the released mixture.

    The paper (§6.2.1) prints ½(e^-s − 1)² for χ² with equal covariances, s = ½|Δμ|²_{Σ⁻¹}. That is not the divergence:
    it stays below ½ however far apart the means are. The exact value, used here, is ½(e^2s − 1).

    Computed in float64 (a variance of 1e-6 makes M ill-conditioned) and returned in the dtype of shift and factor.
    """
    if kind not in DIVERGENCES:
        raise unknown("divergence", kind, DIVERGENCES)
    if not shift.shape[-1] == variance.shape[-1] == factor.shape[-2]:
        raise UsageError(
            f"divergence: shift {tuple(shift.shape)}, variance {tuple(variance.shape)} and factor "
            f"{tuple(factor.shape)} must agree in d: (…, d), (…, d) and (…, d, r)."
        )
    dtype = torch.promote_types(shift.dtype, factor.dtype)
    shapes = shift.shape[:-1], variance.shape[:-1], factor.shape[:-2]
    batch = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    shift, variance, factor = shift.double(), variance.double(), factor.double()
    if kind == "norm":
        value = (_square(shift) + factor.square().sum((-2, -1))) / 2
    elif kind == "mahalanobis":
        value = (shift.square() / variance).sum(-1) + (factor.square().sum(-1) / variance).sum(-1)
    else:
        spread = variance.sqrt()
        noise = factor @ factor.mT  # before dividing by the variances, as there are fewer factors than records
        value = _EXACT[kind](shift / spread, noise / (spread[..., :, None] * spread[..., None, :]))
    return value.expand(batch).to(dtype)


def _kl(w: Tensor, M: Tensor) -> Tensor:
    return (_diagonal(M).sum(-1) + _square(w) - torch.logdet(_eye(M) + M)) / 2


def _reverse_kl(w: Tensor, M: Tensor) -> Tensor:
    eye = _eye(M)
    inverse = torch.linalg.inv(eye + M)
    lost = (_diagonal(eye) - _diagonal(inverse)).sum(-1)  # tr M(I + M)⁻¹
    return (torch.logdet(eye + M) - lost + _form(w, inverse)) / 2


def _chi2(w: Tensor, M: Tensor) -> Tensor:
    eye = _eye(M)
    _, fault = torch.linalg.cholesky_ex((eye - M).detach())
    exists = fault == 0
    M = torch.where(exists[..., None, None], M, 0.0)
    log = _form(w, torch.linalg.inv(eye - M)) - (torch.logdet(eye - M) + torch.logdet(eye + M)) / 2
    exists = exists & (log < _LARGEST)
    return torch.where(exists, torch.expm1(torch.where(exists, log, 0.0)) / 2, torch.inf)


_EXACT = {"kl": _kl, "reverse-kl": _reverse_kl, "chi2": _chi2}
_LARGEST = 60.0
"""Logarithm above which χ² counts as infinite, so that its gradient stays finite in float32."""


def _eye(square: Tensor) -> Tensor:
    return torch.eye(square.shape[-1], dtype=square.dtype, device=square.device)


def _diagonal(square: Tensor) -> Tensor:
    return square.diagonal(dim1=-2, dim2=-1)


def _form(w: Tensor, square: Tensor) -> Tensor:
    return (w * (square @ w[..., None])[..., 0]).sum(-1)


def _square(vectors: Tensor) -> Tensor:
    return vectors.square().sum(-1)
