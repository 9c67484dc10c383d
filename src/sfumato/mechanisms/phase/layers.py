"""Layers on phase tensors that commute with every orthogonal map of the components (Eq. 4 and 5).

A phase tensor is a real tensor (B, d, C, …); for d = 2 the components are real and imaginary part. For an orthogonal
R (d × d) of each record, acting on axis 1, every layer Φ here has Φ(R x) = R Φ(x), in training and in evaluation.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.mechanisms.phase.kernels import (
    EPSILON,
    Delta,
    FixedNormDelta,
    Norm,
    NormDelta,
    channel_mean,
    delta_,
    dot,
    fixed_norm_delta_,
    per_channel,
    plain_delta,
)

MOMENTUM = 0.1


def rotate(x: Tensor, R: Tensor) -> Tensor:
    """R x: (B, d, …) by (B, d, d), each record by its own R, in the memory order of x."""
    if x.dim() == 5 and _is_channels_last(x):
        rows = x.permute(0, 1, 3, 4, 2)
        return torch.bmm(R, rows.flatten(2)).view(rows.shape).permute(0, 1, 4, 2, 3)
    return torch.bmm(R, x.flatten(2)).view(x.shape)


def _is_channels_last(x: Tensor) -> bool:
    """Of (B, d, C, H, W)."""
    return x.shape[2] > 1 and x.stride(2) == 1


class Each(nn.Module):
    """A linear, bias-free module on every component: x_i ↦ A x_i (the convolution under Eq. 5).

    The components join the batch axis and leave it as views, so that channels_last memory stays channels_last. Further
    arguments (a functional layer's weight) are handed on.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor, *arguments: Tensor) -> Tensor:  # (B, d, C, …) → (B, d, C', …)
        y: Tensor = self.module(x.flatten(0, 1), *arguments)
        return y.view(*x.shape[:2], *y.shape[1:])


class PhaseActivation(nn.Module):
    """δ(f) = ‖f‖ / max(‖f‖, c) · f (Eq. 6).

    ``c=None`` means c_k = E‖f_k‖ of each channel over batch and positions, and its running mean in evaluation; like
    every c it is a constant to the gradient.
    """

    mean_norm: Tensor | None

    def __init__(self, channels: int | None = None, c: float | None = 1.0) -> None:
        super().__init__()
        if c is None and channels is None:
            raise ValueError("c_k needs the number of channels")
        if c is not None and c <= 0:
            raise ValueError(f"c must be positive, not {c}")
        self.c = None if c is None else float(c)
        self.overwrite = False
        self.register_buffer("mean_norm", None if channels is None or c is not None else torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        learning = self.training and self.mean_norm is not None
        return self.delta(x, self.threshold(x, dot(x.detach(), x.detach()) if learning else None))

    def delta(self, x: Tensor, c: float | Tensor) -> Tensor:
        if torch.compiler.is_compiling():
            return plain_delta(x, c)
        if _may_overwrite(self):
            return delta_(x, c)
        return Delta.apply(x, c)  # type: ignore[no-any-return, no-untyped-call]

    def threshold(self, x: Tensor, square: Tensor | None) -> float | Tensor:
        """c, or c_k (C, 1, …) > 0 from ‖x‖², given in training, or from memory."""
        if self.mean_norm is None:
            assert self.c is not None
            return self.c
        now = self.mean_norm
        if square is not None:
            now = channel_mean(square.sqrt())
            self.mean_norm.lerp_(now, MOMENTUM)
        return per_channel(now.clamp(min=EPSILON), x[:, 0])

    def extra_repr(self) -> str:
        return f"c={'E‖f‖' if self.c is None else self.c}"


def _may_overwrite(layer: PhaseActivation | PhaseNorm) -> bool:
    """In inference, and if nobody else reads the layer's input (``overwrite``, which ``fuse`` knows)."""
    return layer.overwrite and not torch.is_grad_enabled() and not torch.compiler.is_compiling()


class PhaseNorm(nn.Module):
    """f_k / √E‖f_k‖² over batch and positions (Eq. 7), the running mean square in evaluation."""

    mean_square: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.overwrite = False
        self.register_buffer("mean_square", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:  # (B, d, C, …), same shape out
        if not self.training:
            return x.mul_(self.scale(x)) if _may_overwrite(self) else x * self.scale(x)
        y, mean_square = Norm.apply(x)  # type: ignore[no-untyped-call]
        self.mean_square.lerp_(mean_square, MOMENTUM)
        return y  # type: ignore[no-any-return]

    def scale(self, x: Tensor) -> Tensor:
        """1/√E‖f_k‖² for evaluation: (C, 1, …)."""
        return per_channel((self.mean_square + EPSILON).rsqrt(), x[:, 0])


class PhaseNormActivation(PhaseNorm):
    """``PhaseNorm`` and ``PhaseActivation(c)`` in one pass: what ``to_phase`` makes of a pair in a row."""

    def __init__(self, channels: int, c: float = 1.0) -> None:
        super().__init__(channels)
        self.c = float(c)

    def forward(self, x: Tensor) -> Tensor:
        if torch.compiler.is_compiling():
            return plain_delta(super().forward(x), self.c)
        if not self.training and _may_overwrite(self):
            return fixed_norm_delta_(x, self.scale(x), self.c)
        if not self.training:
            return FixedNormDelta.apply(x, self.scale(x), self.c)  # type: ignore[no-any-return, no-untyped-call]
        y, mean_square = NormDelta.apply(x, self.c)  # type: ignore[no-untyped-call]
        self.mean_square.lerp_(mean_square, MOMENTUM)
        return y  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"c={self.c}"


class _Select(torch.autograd.Function):
    """The units that ``indices`` of a 2-D pool name; ``apply(x, indices, geometry)``.

    torch's gather has a slow backward pass (scatter with additions); that of max-pool is made for these indices.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, indices: Tensor, *geometry: object) -> Tensor:
        ctx.geometry = geometry
        ctx.save_for_backward(indices, x)
        return _select(x, indices)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        indices, x = ctx.saved_tensors
        geometry = ctx.geometry
        back = torch.ops.aten.max_pool2d_with_indices_backward
        merged = indices.unsqueeze(1).expand(-1, x.shape[1], -1, -1, -1).flatten(0, 1)
        gradient = back(upstream[0].flatten(0, 1), x.flatten(0, 1), *geometry, merged)
        return gradient.unflatten(0, x.shape[:2]), None, *(None for _ in geometry)


def _select(x: Tensor, indices: Tensor) -> Tensor:
    """x (B, d, C, H, W), indices into H·W (B, C, h, w) → (B, d, C, h, w), in the memory order of x."""
    h, w = indices.shape[-2:]
    if _is_channels_last(x) and not torch.compiler.is_compiling():
        # numbers into the flat memory (B, d, H·W, C): torch's gather along an inner axis takes twice as long
        batch, d, channels = x.shape[:3]
        starts = torch.arange(0, x.numel(), x[0, 0].numel(), device=x.device).view(batch, d, 1, 1)
        which = indices.permute(0, 2, 3, 1).reshape(batch, 1, h * w, channels)
        flat = torch.add(starts + torch.arange(channels, device=x.device), which, alpha=channels)
        kept = x.permute(0, 1, 3, 4, 2).reshape(-1).index_select(0, flat.view(-1))
        return kept.view(batch, d, h, w, channels).permute(0, 1, 4, 2, 3)
    which = indices.flatten(2).unsqueeze(1).expand(-1, x.shape[1], -1, -1)
    return x.flatten(3).gather(3, which).view(*x.shape[:3], h, w)


class PhaseMaxPool(nn.Module):
    """Max-pooling that keeps the unit of the largest norm in each window, with all its components (§3.1)."""

    def __init__(self, pool: nn.MaxPool1d | nn.MaxPool2d) -> None:
        super().__init__()
        self.flat = isinstance(pool, nn.MaxPool1d)
        settings = (pool.kernel_size, pool.stride or pool.kernel_size, pool.padding, pool.dilation)
        self.kernel_size, self.stride, self.padding, self.dilation = (
            self._two(value, neutral) for value, neutral in zip(settings, (1, 1, 0, 1), strict=True)
        )
        self.ceil_mode = pool.ceil_mode

    def _two(self, value: int | tuple[int, ...], neutral: int) -> list[int]:
        """A signal is a picture of height one."""
        if not self.flat:
            return [value, value] if isinstance(value, int) else list(value)
        return [neutral, value if isinstance(value, int) else value[0]]

    def forward(self, x: Tensor, square: Tensor | None = None) -> Tensor:  # (B, d, C, L) or (B, d, C, H, W)
        """``square``: ‖x‖², if it is at hand."""
        if self.flat:
            return self._pool(x.unsqueeze(-2), None if square is None else square.unsqueeze(-2)).squeeze(-2)
        return self._pool(x, square)

    def _pool(self, x: Tensor, square: Tensor | None) -> Tensor:
        geometry = (self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)
        if torch.compiler.is_compiling():
            return _select(x, F.max_pool2d(x.square().sum(1), *geometry, return_indices=True)[1])
        square = dot(x.detach(), x.detach()) if square is None else square
        indices = F.max_pool2d(square, *geometry, return_indices=True)[1]
        return _Select.apply(x, indices, *geometry)  # type: ignore[no-any-return, no-untyped-call]

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class PhaseActivationPool(nn.Module):
    """``PhaseActivation``, then ``PhaseMaxPool``: ‖δ(f)‖ grows with ‖f‖, so the few that stay are chosen first."""

    def __init__(self, activation: PhaseActivation, pool: PhaseMaxPool) -> None:
        super().__init__()
        self.activation, self.pool = activation, pool
        activation.overwrite = True  # of what the pool has made

    def forward(self, x: Tensor) -> Tensor:
        if torch.compiler.is_compiling():
            return self.activation(self.pool(x))  # type: ignore[no-any-return]
        square = dot(x.detach(), x.detach())
        c = self.activation.threshold(x, square if self.training else None)
        return self.activation.delta(self.pool(x, square), c)


class PhaseDropout(nn.Module):
    """Dropout of whole units: the d components share one mask, and with ``channels`` all positions of a channel too."""

    def __init__(self, p: float = 0.5, channels: bool = False) -> None:
        super().__init__()
        self.p, self.channels = p, channels

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0.0:
            return x
        unit = x[:, :1]  # (B, 1, C, …)
        for axis in range(3, x.dim()) if self.channels else ():
            unit = unit.narrow(axis, 0, 1)
        return x * F.dropout(torch.ones_like(unit), self.p)

    def extra_repr(self) -> str:
        return f"p={self.p}, channels={self.channels}"
