"""Adversarial noise on latents: the iterative fast gradient sign method, with a mask."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.mechanisms.ars.input_gradient import error_gradient

_BATCH = 250
"""What a step reads and writes of so many pictures 28 × 28 stays in a core's cache."""


def against_decoder(decoder: nn.Module, z: Tensor, x: Tensor, mask: Tensor, epsilon: float, n: int) -> Tensor:
    """ẑ of Eqs. 9 and 12: n steps of ε/n along sign(m · ∇_z ‖x − SDec(ẑ)‖²), so |ẑ − z| ≤ ε everywhere.

    ``z`` and ``mask`` are (N, h), ``x`` (N, *shape). A step costs one forward pass and one backward pass to the input;
    the decoder's own weights get no gradient.
    """
    out = z.clone()
    if epsilon == 0.0:
        return out
    with _frozen(decoder):
        gradient = error_gradient(decoder, min(_BATCH, len(z)))
        for start in range(0, len(z), _BATCH):
            rows = slice(start, start + _BATCH)
            moved, real, step = out[rows], x[rows].contiguous(), mask[rows] * (epsilon / n)
            for _ in range(n):
                moved.addcmul_(step, gradient(moved, real).sign_())
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
    """While this is entered the module is in evaluation mode and its weights ask for no gradient; its input may."""
    training, asked = module.training, [parameter.requires_grad for parameter in module.parameters()]
    module.eval().requires_grad_(False)
    try:
        with torch.enable_grad():  # the caller may have said no_grad
            yield
    finally:
        module.train(training)
        for parameter, wanted in zip(module.parameters(), asked, strict=True):
            parameter.requires_grad_(wanted)
