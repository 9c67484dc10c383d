"""δ (Eq. 6), norm (Eq. 7) and both in a row, with backward passes by hand; x is (B, d, C, …), norms run over axis 1.

Autograd's own backward keeps every intermediate and is not finite at f = 0 (the root of ‖f‖²). Here one map of the
size of a norm is kept, ``gain`` with y = gain · x, and everything but the first and last operation works on maps that
are d times smaller than x.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

TINY = 1e-30
EPSILON = 1e-5
"""Added to the mean square, as batch norm does; a dead channel stays 0 instead of 0/0."""

_ROUNDING = 1.0 - 1e-6
"""A gain of 1 is the root of c² over c, which may end a rounding below 1."""

Threshold = float | Tensor
"""c: one number, or one per channel, already shaped (C, 1, …)."""


def dot(a: Tensor, b: Tensor) -> Tensor:
    """⟨a, b⟩ over axis 1: (B, d, …) → (B, …); slices keep the memory order, and are ten times as fast as a sum."""
    out = a[:, 0] * b[:, 0]
    for i in range(1, a.shape[1]):
        out.addcmul_(a[:, i], b[:, i])
    return out


def per_channel(values: Tensor, like: Tensor) -> Tensor:
    """(C,) → (C, 1, …), to meet a map (B, C, …)."""
    return values.reshape(-1, *(1,) * (like.dim() - 2))


def channel_mean(of: Tensor) -> Tensor:
    """(B, C, …) → (C,): E over batch and positions."""
    return of.mean([axis for axis in range(of.dim()) if axis != 1])


def _times(x: Tensor, gain: Tensor) -> Tensor:
    return x * gain.unsqueeze(1)


def _derivative(x: Tensor, gain: Tensor, upstream: Tensor, inner: Tensor) -> Tensor:
    """gain · upstream + inner · x, with ``gain`` and ``inner`` shared by the d components."""
    return _times(upstream, gain).addcmul_(x, inner.unsqueeze(1))


def _bent(gain: Tensor, straight: Threshold) -> Tensor:
    """1 where gain < straight, that is ‖f‖ < c, else 0.

    A comparison into floats is ten times as fast as one into booleans that are multiplied afterwards.
    """
    return torch.lt(gain, straight * _ROUNDING, out=torch.empty_like(gain))


class Delta(torch.autograd.Function):
    """δ(x) = min(1, ‖x‖/c)·x for a constant c; ``apply(x, c)``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, c: Threshold) -> Tensor:
        gain = _delta_gain(x, c)
        ctx.c = c
        ctx.save_for_backward(x, gain)
        return _times(x, gain)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        x, gain = ctx.saved_tensors
        # ‖x‖ < c: dδ = ‖x‖/c · I + x xᵀ / (c ‖x‖), and c ‖x‖ = c² gain
        inner = torch.ops.aten.hardtanh_backward(dot(x, upstream[0]), gain, -1.0, _ROUNDING).div_(
            gain
        )  # 0 where gain = 1
        inner = inner if isinstance(ctx.c, float) and ctx.c == 1.0 else inner.div_(ctx.c * ctx.c)
        return _derivative(x, gain, upstream[0], inner), None


class Norm(torch.autograd.Function):
    """x / √E‖x‖² by channel; ``apply(x)`` gives the result and the mean square."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        mean_square = channel_mean(dot(x, x))  # (C,)
        scale = per_channel((mean_square + EPSILON).rsqrt(), x[:, 0])
        ctx.save_for_backward(x, scale)
        ctx.mark_non_differentiable(mean_square)
        return x * scale, mean_square

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor]:
        x, scale = ctx.saved_tensors
        # z = s x: dL/dx = s (dz − z E⟨z, dz⟩)
        shared = per_channel(channel_mean(dot(x, upstream[0])), x[:, 0])
        return ((upstream[0] * scale).addcmul_(x, shared * scale**3, value=-1.0),)


class NormDelta(torch.autograd.Function):
    """δ(x / √E‖x‖²) in one go; ``apply(x, c)`` gives the result and the mean square."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, c: float) -> tuple[Tensor, Tensor]:
        square = dot(x, x)
        mean_square = channel_mean(square)
        scale = per_channel((mean_square + EPSILON).rsqrt(), square)
        gain = _gain(square, scale, c)
        ctx.c = c
        ctx.save_for_backward(x, gain, scale)
        ctx.mark_non_differentiable(mean_square)
        return _times(x, gain), mean_square

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        x, gain, s = ctx.saved_tensors
        # z = s x and gain = s · min(1, ‖z‖/c). With p = ⟨z, δ'ᵀ dy⟩ = gain ⟨x, dy⟩, twice that where δ is bent:
        # dL/dx = gain · dy + x (bent · s⁴ ⟨x, dy⟩ / (c² gain) − s² E p)
        spare = dot(x, upstream[0])
        inner = _bent(gain, s).mul_(spare)
        mean = per_channel(channel_mean(spare.add_(inner).mul_(gain)), gain)
        torch.addcmul(-s.square() * mean, inner.div_(gain), s**4 / ctx.c**2, out=inner)
        return _derivative(x, gain, upstream[0], inner), None


class FixedNormDelta(torch.autograd.Function):
    """δ(s x) for a given scale s (C, 1, …), as in evaluation; ``apply(x, s, c)``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor, c: float) -> Tensor:
        gain = _gain(dot(x, x), scale, c)
        ctx.c = c
        ctx.save_for_backward(x, gain, scale)
        return _times(x, gain)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        x, gain, s = ctx.saved_tensors
        inner = _bent(gain, s).mul_(dot(x, upstream[0])).div_(gain).mul_(s**4 / ctx.c**2)
        return _derivative(x, gain, upstream[0], inner), None, None


def _bounded(square: Tensor, top: Threshold) -> Tensor:
    """In place; the bottom keeps the derivative finite at 0, and roots away from slow subnormal numbers."""
    if isinstance(top, float):
        return square.clamp_(min=TINY, max=top)
    return square.clamp_(min=torch.full_like(top, TINY), max=top)


def _delta_gain(x: Tensor, c: Threshold) -> Tensor:
    """min(1, ‖x‖/c)."""
    gain = _bounded(dot(x, x), c * c).sqrt_()
    return gain if isinstance(c, float) and c == 1.0 else gain.div_(c)


def delta_(x: Tensor, c: Threshold) -> Tensor:
    """δ in the memory of x, for inference."""
    return x.mul_(_delta_gain(x, c).unsqueeze(1))


def fixed_norm_delta_(x: Tensor, scale: Tensor, c: float) -> Tensor:
    """δ(s x) in the memory of x, for inference."""
    return x.mul_(_gain(dot(x, x), scale, c).unsqueeze(1))


def _gain(square: Tensor, scale: Tensor, c: float) -> Tensor:
    """s · min(1, s‖x‖/c), in the memory of ``square`` = ‖x‖²."""
    return _bounded(square, (c / scale).square()).sqrt_().mul_(scale.square() / c)


def plain_delta(x: Tensor, c: Threshold) -> Tensor:
    """δ in ordinary operations, for export."""
    norm = x.square().sum(1, keepdim=True).clamp(min=TINY).sqrt()
    return x * (norm / c).clamp(max=1.0)
