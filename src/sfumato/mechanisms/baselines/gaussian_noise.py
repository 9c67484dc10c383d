"""``gaussian``: the latent plus noise N(0, σ²I), the filter's comparator at the same budget (§6.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import UsageError
from sfumato.core.guarantee import ONE_ROW, SECURE_NOISE, Condition, Covers, Guarantee
from sfumato.core.randomness import Randomness
from sfumato.core.run_folder import RunFolder
from sfumato.core.traits import Traits
from sfumato.mechanisms.base import Mechanism, Progress
from sfumato.mechanisms.filter.base_networks import networks_of
from sfumato.mechanisms.filter.latent_mechanism import LatentMechanism
from sfumato.mechanisms.halves import Half, Halves, noise_port, payload_port, record_port
from sfumato.mechanisms.halves.shipped_networks import Clipped
from sfumato.mechanisms.parameters import number
from sfumato.privacy.gaussian_mechanism import budget_needed, gaussian_epsilon, sigma_for_budget


class Gaussian(LatentMechanism):
    """z̃ = z + w, w ~ N(0, σ²I) (Eq. 12), with the largest σ whose mean divergence over the owner's records stays within
    ``budget`` (before clipping).

    Latents are clipped to a ball of radius 2√d (d is the prior's mean squared length): without it no (ε, δ) exists.
    """

    name = "gaussian"
    serves_numbers = True  # it looks at no label

    epsilon: float = number(default=0.0, low=0.0, high=1e6, help="demanded ε; 0: what the budget gives")
    delta: float = number(default=1e-5, low=0.0, high=1.0, above_low=True, help="δ at which ε is stated")

    @property
    def traits(self) -> Traits:
        return replace(super().traits, role="baseline")

    def _check_params(self) -> None:
        super()._check_params()
        if self.delta == 1.0:
            raise UsageError("gaussian: delta=1 promises nothing: give a value below 1, for instance 1e-5.")

    def _fit(self, data: Dataset, run: RunFolder | None, progress: Progress, start: Mechanism | None) -> None:
        self._fit_base(data, run, start)
        _, variance = self.base_.posterior(data.x)
        kind, variances = self._divergence(), variance.numpy()
        if self.epsilon > 0:
            needed = budget_needed(self.epsilon, self.delta, self._sensitivity(), variances, kind)
            if needed > self.budget:
                price = "no budget pays for it" if math.isinf(needed) else f"it takes {1.001 * needed:.4g}"
                raise UsageError(
                    f"gaussian: epsilon={self.epsilon:g} at delta={self.delta:g} is out of reach within "
                    f"budget={self.budget:g} ({self.divergence}): {price}. Give a larger budget or epsilon, or kl."
                )
        self.sigma_ = sigma_for_budget(self.budget, variances, kind)
        progress(1, 1, {"sigma": self.sigma_})

    def _radius(self) -> float:
        return 2.0 * math.sqrt(self.base_.latent)

    def _sensitivity(self) -> float:
        """L of Theorem 6.1: any two clipped latents are neighbours."""
        return 2.0 * self._radius()

    def _perturb(
        self, mean: Tensor, variance: Tensor, private: Mapping[str, IntArray], randomness: Randomness
    ) -> FloatArray:
        shape = tuple(mean.shape)
        z = mean + variance.sqrt() * torch.as_tensor(randomness.normal(shape)).float()
        z = z * (self._radius() / z.norm(dim=1, keepdim=True)).clamp(max=1.0)
        return np.asarray(z.numpy() + self.sigma_ * randomness.normal(shape), dtype=np.float32)

    def halves(self) -> Halves:
        """Base, clip and noise on the device; it has no receiver of its own."""
        schema, d, records = self.schema_, self.base_.latent, self.output == "data"
        posterior, decoder = networks_of(self.base_, self.output)
        network = Clipped(posterior, d, self._radius(), self.sigma_, decoder)
        payload = payload_port(schema.shape if records else (d,), records=records)
        return Halves(Half(network, (record_port(schema), noise_port((2 * d,), "normal")), payload))

    def guarantee(self) -> Guarantee:
        return Guarantee(
            kind="dp",
            statement=(
                f"Each latent is clipped to length {self._radius():.3g} and released once with noise of σ = "
                f"{self.sigma_:.4g}: exact (ε, δ) of the Gaussian mechanism, not the looser bound of Theorem 6.1. "
                "It hides which record a latent came from."
            ),
            epsilon=gaussian_epsilon(self.sigma_, self.delta, self._sensitivity()),
            delta=self.delta,
            relation="replace one record by any other (local: every record on its own)",
            event={"mechanism": "gaussian", "sigma": self.sigma_, "sensitivity": self._sensitivity(), "releases": 1},
            conditions=(
                SECURE_NOISE,
                ONE_ROW,
                Condition(
                    "public-fit",
                    "σ and the base were fitted to the owner's records and count as public: what they say is "
                    "not covered",
                ),
                Condition("real-noise", "noise in floating-point numbers is as good as noise in real ones"),
            ),
            covers=Covers(),
        )

    def _modules(self) -> dict[str, nn.Module]:
        return {}

    def _measured(self) -> dict[str, Any]:
        return {"sigma": self.sigma_, "norm": self.base_.latent * self.sigma_**2 / 2}

    def _remember(self, stored: Mapping[str, Any]) -> None:
        self.sigma_ = float(stored["sigma"])
