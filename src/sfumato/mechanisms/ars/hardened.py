"""The hardened encoder: keep what serves the tasks, drop the rest, and train against a decoder that already adapts.

A perturbation that is a function of record and mask can be learnt and undone. What is lost, and noise that nobody can
predict, stay lost. So the autoencoder's encoder is followed by a sieve, and both together become S: ẑ = S(x) + ε·ξ, ξ
standard normal, fresh for every record, S(x) standardised. S minimises

    Σ_t CE_t(C_t(ẑ), y_t) − s · [ λ₀ · ‖x − D(ẑ)‖² / Var(x) + Σ_k λ_k · min(1, CE_k(F_k(ẑ), a_k) / H_k) ],

while a decoder D and attribute networks F_k are trained on ẑ for several steps before every step of S (H_k is the
entropy of a uniform guess). Of a label that is a number CE is the squared error of the standardised number and H its
variance, 1: nothing is gained by misleading F_k beyond the error of a constant guess. With ε fixed, the noise is a
channel of limited capacity: directions that the tasks t do not need are given up, because they would cost signal.

S(x) ends inside the ball ‖S(x)‖ ≤ √h, whatever the weights and the record. So the signal-to-noise ratio ‖S(x)‖² / ε²
with which a record leaves is at most h / ε², and its release tells at most

    I(x; ẑ) ≤ (h / 2) · log₂(1 + 1 / ε²) ≤ h / (2 ln 2 · ε²) bits

about it: ẑ has a mean square of at most h·(1 + ε²), normal numbers have the largest entropy with that, h(ẑ | x) is that
of the noise. The sum is rounded to about ε/1000, because the last bits of a float say what was added. An honest encoder
loses little (standardised latents have ‖S(x)‖² = h on average), and one that somebody scaled up gains nothing.
Deviations of a party's own records would do the same, but they would be an exact answer to a question that
the initiator chose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.core.dataset import FloatArray
from sfumato.mechanisms.label_targets import guess_loss, label_loss
from sfumato.nets.autoencoders import relu_chain
from sfumato.nets.encoders import classifier
from sfumato.nets.training_loop import adam, take_step

ADAPTING = 2
"""Steps of the adversaries before each step of the sieve."""
_AT_ONCE = 2**21
"""Numbers of records that are copied at a time."""
_LARGE = 1e6
"""Keeps the sum of squares finite under weights that come from outside."""


class Ball(nn.Module):
    """(B, h) → (B, h): longer vectors are shortened to √h, and what is no number becomes 0; not while S trains."""

    def forward(self, z: Tensor) -> Tensor:
        if self.training:
            return z
        z = z.nan_to_num(0.0, _LARGE, -_LARGE).clamp(-_LARGE, _LARGE)
        length: Tensor = torch.linalg.vector_norm(z, dim=1, keepdim=True)  # (B, 1)
        return z / (length / math.sqrt(z.shape[1])).clamp_min(1.0)


def mean_variance(records: FloatArray) -> float:
    """The variance of each number over records (N, …), as a mean over numbers; a batch is in memory at a time."""
    count = max(1, _AT_ONCE // records[0].size)
    parts = [records[start : start + count] for start in range(0, len(records), count)]
    mean = sum(part.sum(axis=0, dtype=np.float64) for part in parts) / len(records)
    squares = sum(np.square(part - mean).sum(axis=0) for part in parts)
    return float(np.mean(squares / len(records)))


def sieve(latent: int, width: int) -> list[nn.Module]:
    """The end of S: (B, h) → (B, ``width``), standardised over the batch while it trains, then inside the ball."""
    return [*relu_chain(latent, 2 * latent, width), nn.BatchNorm1d(width, affine=False), Ball()]


@dataclass(frozen=True)
class Adversaries:
    """D and the F_k of the game, and the initiator's own task networks C_t."""

    decoder: nn.Module
    tasks: nn.ModuleList
    attributes: nn.ModuleList

    @classmethod
    def built(cls, decoder: nn.Module, latent: int, tasks: Sequence[int], attributes: Sequence[int]) -> Adversaries:
        """For labels with so many classes each, 1 for a number."""
        return cls(
            decoder,
            nn.ModuleList(classifier((latent,), classes) for classes in tasks),
            nn.ModuleList(classifier((latent,), classes) for classes in attributes),
        )

    def modules(self) -> dict[str, nn.Module]:
        """By name, for storage."""
        return {"adversary": self.decoder, "tasks": self.tasks, "attributes": self.attributes}


class HardeningGame:
    """One mini-batch after the other; see the module's docstring."""

    def __init__(
        self,
        encoder: nn.Module,
        others: Adversaries,
        *,
        epsilon: float,
        weights: Sequence[float],
        strength: float,
        variance: float,
        rate: float,
    ) -> None:
        self.encoder, self.others = encoder, others
        self.epsilon, self.weights, self.strength, self.variance = epsilon, weights, strength, variance
        adversaries = [*others.decoder.parameters(), *others.attributes.parameters()]
        self.optimisers: Mapping[str, torch.optim.Adam] = {
            "encoder": adam([*encoder.parameters(), *others.tasks.parameters()], rate),
            "adversaries": adam(adversaries, rate),
        }

    def play(self, x: Tensor, tasks: Sequence[Tensor], attributes: Sequence[Tensor]) -> dict[str, float]:
        clean = self.encoder(x)
        for _ in range(ADAPTING):
            noisy = self._noisy(clean.detach())
            error, entropies = self._adversaries(noisy, x, attributes)
            take_step(self.optimisers["adversaries"], error / self.variance + sum(entropies, torch.zeros(())))
        noisy = self._noisy(clean)
        served = sum((label_loss(C(noisy), y) for C, y in zip(self.others.tasks, tasks, strict=True)), torch.zeros(()))
        error, entropies = self._adversaries(noisy, x, attributes)
        lam_0, *rest = self.weights
        hidden = lam_0 * error / self.variance
        for lam_k, entropy, F_k in zip(rest, entropies, self.others.attributes, strict=True):
            hidden = hidden + lam_k * (entropy / guess_loss(_width(F_k))).clamp_max(1.0)
        take_step(self.optimisers["encoder"], served - self.strength * hidden)
        return {"task": served.item(), "error": error.item(), "hidden": hidden.item()}

    def _noisy(self, clean: Tensor) -> Tensor:
        return clean + self.epsilon * torch.randn_like(clean)

    def _adversaries(self, noisy: Tensor, x: Tensor, attributes: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
        error = F.mse_loss(self.others.decoder(noisy), x)
        return error, [label_loss(F_k(noisy), a) for F_k, a in zip(self.others.attributes, attributes, strict=True)]


def _width(network: nn.Module) -> int:
    last = list(network.modules())[-1]
    assert isinstance(last, nn.Linear)
    return last.out_features
