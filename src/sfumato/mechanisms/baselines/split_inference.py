"""Baselines of the ``phase`` paper (§4.3): the same network cut at the same place, without encryption.

``split`` is the original network, ``split-extra`` has the added generator as well, ``split-noisy`` adds noise to the
feature. What leaves is the feature at the cut; the rest of the network is the receiver's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.guarantee import Guarantee, empirical
from sfumato.core.randomness import Randomness, derive_seed
from sfumato.core.schema import Schema
from sfumato.core.traits import Traits
from sfumato.mechanisms.encoder_mechanism import Discriminative
from sfumato.mechanisms.halves import Halves, plain_halves
from sfumato.mechanisms.halves.shipped_networks import Added
from sfumato.mechanisms.parameters import number
from sfumato.mechanisms.phase.cut import CutNetwork, generator
from sfumato.nets.encoders import output_shape
from sfumato.nets.training_loop import as_tensor, channels_last, forward_in_batches


class Split(CutNetwork):
    """``split``: the original network; what leaves is its feature at the cut."""

    name = "split"

    traits = Traits(role="baseline")

    def _build(self, schema: Schema) -> None:
        torch.manual_seed(derive_seed(self.seed, self.name, "weights"))
        thirds = self._thirds(schema)
        self.encoder_ = channels_last(self._encoder(thirds.head, thirds.features))
        self.rest_ = channels_last(nn.Sequential(thirds.middle, thirds.tail))

    def _encoder(self, head: nn.Module, features: tuple[int, ...]) -> nn.Module:
        return head

    def _game(self) -> Discriminative:
        return Discriminative(self.encoder_, self.rest_, self._task(self.schema_), self.rate)

    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        return forward_in_batches(self.encoder_, as_tensor(x)).numpy()

    def predict(self, payload: FloatArray) -> FloatArray:
        return forward_in_batches(self.rest_, as_tensor(payload)).numpy()

    def public_encoder(self) -> nn.Module | None:
        return self.encoder_

    def halves(self) -> Halves:
        """The network up to the cut on the device, the rest in the cloud."""
        return plain_halves(self.encoder_, self.rest_, self.schema_, self._task(self.schema_).labels)

    def _modules(self) -> dict[str, nn.Module]:
        return {"encoder": self.encoder_, "rest": self.rest_}

    def guarantee(self) -> Guarantee:
        return empirical("The plain feature at the cut of a network trained for the task alone: no defence.")


class SplitExtra(Split):
    """``split-extra``: the original network with ``phase``'s added convolution before the cut, without the critic."""

    name = "split-extra"

    def _encoder(self, head: nn.Module, features: tuple[int, ...]) -> nn.Module:
        return nn.Sequential(head, generator(features, features[0]))


class _Noise(nn.Module):
    """a + γ·ε in training, with ε as large as a is on average; the size is remembered for the release."""

    def __init__(self, gamma: float) -> None:
        super().__init__()
        self.gamma = gamma
        self.register_buffer("magnitude", torch.zeros(()))
        self.register_buffer("batches", torch.zeros(()))
        self.magnitude: Tensor
        self.batches: Tensor

    def forward(self, a: Tensor) -> Tensor:  # (B, …) → (B, …)
        if not self.training:
            return a
        with torch.no_grad():
            self.batches += 1
            share = torch.clamp(1.0 / self.batches, min=0.01)  # an average at first, a moving one later
            self.magnitude += share * (a.abs().mean() - self.magnitude)
        return a + self.gamma * self.scale() * torch.randn_like(a)

    def scale(self) -> Tensor:
        """The deviation of a normal variable whose mean absolute value is the feature's: E|σz| = σ·√(2/π)."""
        return self.magnitude * math.sqrt(math.pi / 2)


class SplitNoisy(Split):
    """``split-noisy``: a + γ·ε, ε normal with the same average magnitude as a; trained with it."""

    name = "split-noisy"
    knob = "gamma"

    gamma: float = number(default=0.5, low=0.0, high=100.0, above_low=True, help="γ: noise, by the feature's magnitude")

    traits = Traits(role="baseline", randomised=True)

    def _build(self, schema: Schema) -> None:
        super()._build(schema)
        self.noise_ = _Noise(self.gamma)

    def _game(self) -> Discriminative:
        return Discriminative(
            nn.Sequential(self.encoder_, self.noise_), self.rest_, self._task(self.schema_), self.rate
        )

    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        features = super()._release(x, private, randomness)
        noise = randomness.normal(features.shape).astype(np.float32)
        return features + np.float32(self._deviation()) * noise

    def _deviation(self) -> float:
        return self.gamma * self.noise_.scale().item()

    def halves(self) -> Halves:
        """As the original network, with the noise on the device."""
        width, labels = output_shape(self.encoder_, self.schema_.shape), self._task(self.schema_).labels
        device = Added(self.encoder_, self._deviation())
        return plain_halves(device, self.rest_, self.schema_, labels, noise="normal", width=width)

    def _modules(self) -> dict[str, nn.Module]:
        return {**super()._modules(), "noise": self.noise_}

    def guarantee(self) -> Guarantee:
        return empirical(
            f"Features at the cut with normal noise, {self.gamma:g} times as large as they are on average. Features "
            "are unbounded, so the noise carries no differential-privacy statement."
        )
