"""Adversarial noise on latents: the iterative fast gradient sign method, with a mask."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_BATCH = 1000


def against_decoder(decoder: nn.Module, z: Tensor, x: Tensor, mask: Tensor, epsilon: float, n: int) -> Tensor:
    """ẑ of Eqs. 9 and 12: n steps of ε/n along sign(m · ∇_z ‖x − SDec(ẑ)‖²), so |ẑ − z| ≤ ε everywhere.

    ``z`` and ``mask`` are (N, h), ``x`` (N, *shape). The decoder's own weights get no gradient: a step costs one
    forward and one backward pass.
    """
    if epsilon == 0.0:
        return z.clone()
    out = torch.empty_like(z)
    with _frozen(decoder):
        for start in range(0, len(z), _BATCH):
            rows = slice(start, start + _BATCH)
            moved, real, step = z[rows].clone(), x[rows], mask[rows] * (epsilon / n)
            for _ in range(n):
                moved.requires_grad_(True)
                error = F.mse_loss(decoder(moved), real, reduction="sum")
                (gradient,) = torch.autograd.grad(error, moved)
                moved = moved.detach().addcmul_(step, gradient.sign_())
            out[rows] = moved
    return out


def towards_class(classifier: nn.Module, z: Tensor, wanted: int, epsilon: float) -> Tensor:
    """δ_A of Eq. 14, one step: −ε · sign(∇_z D(r, F(z))), D the cross entropy, r the one-hot code of ``wanted``."""
    with _frozen(classifier):
        points = z.clone().requires_grad_(True)
        goal = torch.full((len(z),), wanted)
        (gradient,) = torch.autograd.grad(F.cross_entropy(classifier(points), goal, reduction="sum"), points)
    return -epsilon * gradient.sign()


@contextmanager
def _frozen(module: nn.Module) -> Iterator[None]:
    """While this is entered the module is in evaluation mode and its weights ask for no gradient."""
    training, asked = module.training, [parameter.requires_grad for parameter in module.parameters()]
    module.eval().requires_grad_(False)
    try:
        yield
    finally:
        module.train(training)
        for parameter, wanted in zip(module.parameters(), asked, strict=True):
            parameter.requires_grad_(wanted)
