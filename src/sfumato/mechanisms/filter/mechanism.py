"""``filter``: a generative filter on the latent of a fixed autoencoder (Chen, Navidi, Ermon and Rajagopal).

The autoencoder is trained once and shared; the filter, a few kilobytes, is trained for one choice of what to hide and
what to serve. What leaves is the perturbed latent z̃ = f(z, ε, y), or the record decoded from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import DataError
from sfumato.core.guarantee import Guarantee, empirical
from sfumato.core.intervals import mean_interval
from sfumato.core.randomness import Randomness, derive_seed
from sfumato.core.run_folder import RunFolder
from sfumato.core.traits import Traits
from sfumato.mechanisms.base import Mechanism, Progress
from sfumato.mechanisms.filter.base_networks import networks_of
from sfumato.mechanisms.filter.bases import Base
from sfumato.mechanisms.filter.batched_mlp import BatchedMLP
from sfumato.mechanisms.filter.budget import spent
from sfumato.mechanisms.filter.filter_networks import Filters, Shape, filters
from sfumato.mechanisms.filter.label_choices import refuse_impossible
from sfumato.mechanisms.filter.latent_mechanism import LatentMechanism
from sfumato.mechanisms.filter.min_max_game import ROUNDS, Choice, Labels, MinMaxGame, Rules, Spent
from sfumato.mechanisms.halves import Half, Halves, noise_port, payload_port, private_port, reader, record_port
from sfumato.mechanisms.halves.shipped_networks import Filtered, OneUser
from sfumato.mechanisms.label_targets import target, told, widths
from sfumato.mechanisms.parameters import learning_rate, number, whole
from sfumato.mechanisms.search_space import KnobRange, SearchSpace
from sfumato.mechanisms.training import train
from sfumato.nets.training_loop import as_tensor

FEWEST_RECORDS = 100
_AT_ONCE = 1024
"""Records that are filtered at once: what the small network makes of them stays in the processor's cache."""


class Filter(LatentMechanism):
    """Hides every private label and serves the first utility label: z̃ = z + m(μ, ε₀, y) + A_ε·ε.

    All losses are in units of log(classes), so that β means the same for ten classes and for two. A number counts by
    its squared error in units of its variance.
    """

    name = "filter"
    serves_numbers = True
    hides_numbers = True  # h regresses it, and the filter is told the number
    searched: ClassVar[tuple[SearchSpace, ...]] = (
        SearchSpace(
            "features",
            against=("attribute", "reconstruction"),
            knobs={
                "beta": KnobRange(0.05, 1.0, log=True),
                "budget": KnobRange(30.0, 3000.0, log=True),
                "base": ("pca", ""),
            },
            starts=({"base": "pca"}, {"base": "pca", "beta": 0.15}, {"base": ""}),
            cost=5.0,
        ),
        SearchSpace(
            "records",
            against=("attribute",),
            knobs={"beta": KnobRange(0.05, 1.0, log=True), "budget": KnobRange(30.0, 3000.0, log=True)},
            starts=({}, {"beta": 0.15}),
            fixed={"base": "pca", "output": "data"},
            cost=5.0,
        ),
    )
    shape: ClassVar[Shape] = "nonlinear"
    first_noise: ClassVar[float] = 0.5
    """Share of the budget that the noise begins with; training takes back what costs utility."""

    beta: float = number(default=0.3, low=0.0, high=1e6, help="β of Eq. 2: larger serves better and hides less")
    steps: int = whole(default=1000, low=ROUNDS, high=10_000_000, help="steps of the filter")
    adversary_steps: int = whole(default=8, low=1, high=100, help="steps of h for each step of the filter and of ν")
    batch: int = whole(default=512, low=8, high=65_536, help="records in a mini-batch")
    rate: float = learning_rate(default=3e-3)

    @property
    def traits(self) -> Traits:
        return Traits(randomised=True, reads_private=True, gives_records=self.output == "data")

    def _take(self, base: Base) -> None:
        super()._take(base)
        schema, latent = self.schema_, base.latent
        torch.manual_seed(derive_seed(self.seed, "filter", "weights"))
        self.filter_: Filters = filters(self.shape, 1, latent, sum(widths(schema, tuple(schema.private))))
        self.classifier_ = BatchedMLP(1, latent, *self.hidden(latent), schema.width(next(iter(schema.utility))))

    def _fit(self, data: Dataset, run: RunFolder | None, progress: Progress, start: Mechanism | None) -> None:
        if len(data) < FEWEST_RECORDS:
            raise DataError(f"{data.name}: a filter needs {FEWEST_RECORDS} records at least, got {len(data)}.")
        first = next(iter(data.utility))
        served = {first: data.utility[first]}
        refuse_impossible(data.private, data.utility, data.name, data.schema.numbers)
        self._fit_base(data, run, start)
        mean, variance = self.base_.posterior(data.x)
        choice = Choice(
            private=Labels.of(data.private, data.schema),
            utility=Labels.of(served, data.schema),
            own=torch.arange(len(data)),
            public=torch.empty(0, dtype=torch.long),
            budget=self.budget,
        )
        game = MinMaxGame(mean, variance, [choice], self.rules(mean.shape[1]))
        train(game, ROUNDS, game.round, game.optimisers, run, progress)
        (self.spent_,) = game.enforce()
        self.filter_, self.classifier_ = game.f, game.nu

    @staticmethod
    def hidden(latent: int) -> tuple[int, ...]:  # noqa: ARG004 — the paper's depend on it
        """Widths of adversary h and utility classifier ν for latents of so many numbers."""
        return 128, 128

    def rules(self, latent: int) -> Rules:
        """This filter's settings, as a game on latents of so many numbers wants them."""
        return Rules(
            shape=self.shape,
            divergence=self._divergence(),
            beta=self.beta,
            steps=self.steps,
            batch=self.batch,
            rate=self.rate,
            hidden=self.hidden(latent),
            adversary_steps=self.adversary_steps,
            first_noise=self.first_noise,
            seed=self.seed,
        )

    def _perturb(
        self, mean: Tensor, variance: Tensor, private: Mapping[str, IntArray], randomness: Randomness
    ) -> FloatArray:
        normal = randomness.normal((len(mean), 2 * mean.shape[1] + self.filter_.chance)).astype(np.float32)
        return self.apply(mean, variance, self._one_hot(private), torch.as_tensor(normal))

    def apply(self, mean: Tensor, variance: Tensor, y: Tensor, normal: Tensor) -> FloatArray:
        """z̃ (N, d) for posteriors (N, d), one-hot labels (N, k) and standard normal noise (N, 2d + chance)."""
        d = mean.shape[1]
        released = torch.empty_like(mean)
        every = (released, mean, variance, y, normal)
        with torch.inference_mode():
            for out, m, v, labels, drawn in zip(*(torch.split(part, _AT_ONCE) for part in every), strict=True):
                sample, noise, chance = drawn[:, :d], drawn[:, d : 2 * d], drawn[:, 2 * d :]
                shift, factor = self.filter_(m[None], labels[None], chance[None])
                out.copy_(m + v.sqrt() * sample + shift[0] + noise @ factor[0].T)
        return released.numpy()

    def _one_hot(self, private: Mapping[str, IntArray]) -> Tensor:
        schema = self.schema_
        parts = [told(target(label, private[label], schema), schema.width(label)) for label in schema.private]
        return torch.cat(parts, dim=1)

    def measure_spent(self, data: Dataset) -> tuple[float, tuple[float, float]]:
        """The mean divergence of these records' release from their latents, and its interval."""
        mean, variance = self.base_.posterior(data.x)
        y = self._one_hot(data.private)
        alike = (variance == variance[:1]).all()
        spread = variance[None, :1] if alike else variance[None]
        values = spent(self.filter_, mean[None], spread, y[None], self._divergence(), self.seed)[0].numpy()
        return float(values.mean()), mean_interval(values, data.ids)

    def predict(self, payload: FloatArray) -> FloatArray | None:
        """ν(z̃); None for decoded records, which ν has never seen, and on a device that has no ν."""
        if self.output == "data" or "classifier" in self.absent_:
            return None
        with torch.inference_mode():
            return np.asarray(self.classifier_(as_tensor(payload)[None])[0])

    def halves(self) -> Halves:
        """Base and filter on the device, ν in the cloud; decoded records have no receiver of their own."""
        schema, d, records = self.schema_, self.base_.latent, self.output == "data"
        posterior, decoder = networks_of(self.base_, self.output)
        payload = payload_port(schema.shape if records else (d,), records=records)
        noise = noise_port((2 * d + self.filter_.chance,), "normal")
        network = Filtered(posterior, self.filter_, d, decoder)
        device = Half(network, (record_port(schema), private_port(schema), noise), payload)
        if records or "classifier" in self.absent_:
            return Halves(device)
        served = next(iter(schema.utility))
        return Halves(device, reader(OneUser(self.classifier_), payload, schema.width(served)), labels=(served,))

    def guarantee(self) -> Guarantee:
        return empirical(
            f"Every latent of {self.base_.title} is perturbed within a mean budget of {self.budget:g} ({self._unit()}; "
            f"{self.spent_.divergence:.3g} spent on held-out records{self._moved()}). The budget "
            "bounds the distortion, not the leak: what the release says about a private label is what the attacks of "
            "the audit measured."
        )

    def _moved(self) -> str:
        """What was spent in the unit in which the paper's budgets give its figures, if the budget has another."""
        known = self.divergence != "norm" and self.spent_.norm is not None
        return f", which is {self.spent_.norm:.3g} by half the squared norm" if known else ""

    def _modules(self) -> dict[str, nn.Module]:
        return {"filter": self.filter_, "classifier": self.classifier_}

    def _measured(self) -> dict[str, Any]:
        return {"budget": self.budget, "norm": self.spent_.norm, "spent": vars(self.spent_)}

    def _remember(self, stored: Mapping[str, Any]) -> None:
        self.spent_ = Spent(**stored["spent"])


class LinearFilter(Filter):
    """The paper's own filter, z̃ = z + A[ε; y] (Eq. 23), with its own small classifiers (§6.5.3): fast, and easily read.

    Made in seconds and stored in a kilobyte. It can only move each class as a whole and add noise.
    """

    name = "filter-linear"
    searched = tuple(replace(way, cost=2.0) for way in Filter.searched)
    shape = "linear"
    first_noise = 0.0

    beta = 0.5
    steps = 600
    adversary_steps = 1
    rate = 5e-3

    @staticmethod
    def hidden(latent: int) -> tuple[int, ...]:
        """FC(15), and FC(60) from 50 numbers on, as for the paper's faces (§6.5.3)."""
        return (60,) if latent >= 50 else (15,)
