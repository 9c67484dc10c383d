"""Simple ways to protect shared latents, to hold beside ``ars``: the encoder it publishes, and no game."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import UsageError
from sfumato.core.guarantee import Guarantee, empirical
from sfumato.core.ports import Law
from sfumato.core.randomness import Randomness, derive_seed
from sfumato.core.run_folder import RunFolder
from sfumato.core.schema import Schema
from sfumato.core.traits import Traits
from sfumato.mechanisms.ars.autoencoder_stage import autoencoder_stage
from sfumato.mechanisms.ars.hardened import sieve
from sfumato.mechanisms.ars.training_stages import Play, TrainingStage, train_stages
from sfumato.mechanisms.base import Mechanism, Progress
from sfumato.mechanisms.halves import Halves, plain_halves
from sfumato.mechanisms.halves.shipped_networks import Added, Rounded
from sfumato.mechanisms.label_targets import label_loss, target
from sfumato.mechanisms.parameters import choice, learning_rate, number, whole
from sfumato.mechanisms.storage import load_state_of
from sfumato.nets.autoencoders import autoencoder, standardise, unstandardised
from sfumato.nets.encoders import classifier
from sfumato.nets.training_loop import adam, as_tensor, channels_last, forward_in_batches, take_step

Way = Literal["uniform", "gaussian", "pca", "dithered"]
Learns = Literal["records", "labels"]


class LatentNoise(Mechanism):
    """``latent-noise``: standardised latents z of the encoder that ``ars`` would publish, protected in a simple way.

    ``uniform``   z + U(−ε, ε), the paper's baseline (§5.2.1)
    ``gaussian``  z + ε · N(0, 1)
    ``dithered``  Δ · round(z/Δ + u), Δ = ε, u uniform on (−½, ½): a grid that is right on average
    ``pca``       z on the ``keep`` directions in which the owner's latents vary most; ``epsilon`` has no effect

    The autoencoder learns from every ``one_in``-th record: what the initiator of so many parties has. Every number has
    noise of its own, fresh for each release.

    With ``learns=labels`` the encoder is that of hardened ``ars``, layer for layer, trained on for the utility labels
    in the same number of passes, without noise and without anybody to hide from.
    """

    name = "latent-noise"
    serves_numbers = True
    knob = "epsilon"

    epsilon: float = number(default=1.0, low=0.0, high=1e3, help="noise in deviations of a latent; no budget")
    way: Way = choice(default="uniform", options=get_args(Way), help="how latents are protected")
    learns: Learns = choice(
        default="records", options=get_args(Learns), help="the encoder learns records, or the utility labels as well"
    )
    keep: int = whole(default=16, low=0, high=4096, help="principal directions that leave (way=pca only)")
    one_in: int = whole(default=1, low=1, high=1000, help="the autoencoder learns from every one_in-th record")
    latent: int = whole(default=64, low=1, high=4096, help="numbers in the autoencoder's latent")
    rate: float = learning_rate(default=4e-3)
    epochs: int = whole(default=20, low=1, high=10_000, help="passes over the owner's records")
    batch: int = whole(default=128, low=8, high=65_536, help="records in a mini-batch")

    @property
    def traits(self) -> Traits:
        served = self.learns == "labels"
        variant = f"{self.way}, supervised" if served else self.way
        return Traits(role="baseline", variant=variant, randomised=self.way != "pca")

    def _check_params(self) -> None:
        super()._check_params()
        if self.way == "pca" and not 1 <= self.keep <= self.latent:
            raise UsageError(f"{self.name}: keep={self.keep}: keep 1 to {self.latent} directions of {self.latent}.")

    def _build(self, schema: Schema) -> None:
        torch.manual_seed(derive_seed(self.seed, "ars", "weights"))  # the very encoder that ars trains
        self._front, decoder = autoencoder(schema.kind, schema.shape, self.latent)
        channels_last(self._front)
        after = sieve(self.latent, self.latent) if self.learns == "labels" else []
        self.encoder_ = nn.Sequential(*self._front, *after)
        self.decoder_ = channels_last(decoder)
        self.directions_: nn.Linear | None = None
        if self.way == "pca":
            self.directions_ = nn.Linear(self.latent, self.keep, bias=False).requires_grad_(False)

    def _copies(self) -> int:
        return 0

    def _fit(self, data: Dataset, run: RunFolder | None, progress: Progress, start: Mechanism | None) -> None:
        own = data.take(slice(0, None, self.one_in))
        x = as_tensor(own.x)
        stages = [autoencoder_stage("autoencoder-0", self._front, self.decoder_, x, self.rate)]
        if self.learns == "labels":
            stages.append(self._serving_stage(own))
        if isinstance(start, LatentNoise) and start.learns == self.learns:  # it knows nothing of way, epsilon and keep
            load_state_of({"encoder": self.encoder_, "decoder": self.decoder_}, start.state(), self)
            stages = []
        train_stages(self, stages, epochs=self.epochs, batch=self.batch, seed=self.seed, run=run, progress=progress)
        if self.directions_ is not None:
            self.directions_.weight.copy_(principal(forward_in_batches(self.encoder_, x), self.keep))

    def _serving_stage(self, own: Dataset) -> TrainingStage:
        """The hardening of ``ars`` without its noise and its adversaries."""
        x, labels = as_tensor(own.x), [target(label, codes, own.schema) for label, codes in own.utility.items()]
        tasks = nn.ModuleList(classifier((self.latent,), own.schema.width(label)) for label in own.utility)
        optimiser = adam([*self.encoder_.parameters(), *tasks.parameters()], self.rate)

        def play(rows: Tensor) -> dict[str, float]:
            z = self.encoder_(x[rows])
            served = sum((label_loss(C(z), y[rows]) for C, y in zip(tasks, labels, strict=True)), torch.zeros(()))
            take_step(optimiser, served)
            return {"task": served.item()}

        def begin() -> Play:
            return play

        def end() -> None:
            standardised = nn.Sequential(*list(self.encoder_)[:-1])  # without the ball
            standardise(standardised, forward_in_batches(unstandardised(standardised), x))

        return TrainingStage("serving", len(x), {"adam": optimiser}, begin, end)

    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        z = forward_in_batches(self.public_encoder(), as_tensor(x)).numpy()
        return z if self.way == "pca" or self.epsilon == 0.0 else self._noisy(z, randomness)

    def _noisy(self, z: FloatArray, randomness: Randomness) -> FloatArray:
        if self.way == "gaussian":
            noisy = z + self.epsilon * randomness.normal(z.shape)
        elif self.way == "uniform":
            noisy = z + self.epsilon * (2.0 * randomness.uniform(z.shape) - 1.0)
        else:
            noisy = self.epsilon * np.round(z / self.epsilon + randomness.uniform(z.shape) - 0.5)
        return noisy.astype(np.float32)

    def public_encoder(self) -> nn.Module:
        return nn.Sequential(*self.encoder_, *([] if self.directions_ is None else [self.directions_])).eval()

    def halves(self) -> Halves:
        """The encoder with its noise; it has no receiver of its own."""
        encoder, width, schema = self.public_encoder(), (self.latent,), self.schema_
        if self.way == "pca" or self.epsilon == 0.0:
            return plain_halves(encoder, None, schema, ())
        law: Law = "normal" if self.way == "gaussian" else "uniform"
        if self.way == "dithered":
            dithered = Rounded(Added(encoder, self.epsilon, 0.5), self.epsilon)
            halves = plain_halves(dithered, None, schema, (), noise=law, width=width)
            assert halves.device is not None
            return replace(halves, device=replace(halves.device, jump=self.epsilon))
        scale, middle = (self.epsilon, 0.0) if self.way == "gaussian" else (2.0 * self.epsilon, 0.5)
        return plain_halves(Added(encoder, scale, middle), None, schema, (), noise=law, width=width)

    def guarantee(self) -> Guarantee:
        how = {
            "uniform": f"uniform noise up to {self.epsilon:g} standard deviations",
            "gaussian": f"Gaussian noise of {self.epsilon:g} standard deviations",
            "dithered": f"rounding to a dithered grid of {self.epsilon:g} standard deviations",
            "pca": f"nothing but their first {self.keep} principal directions",
        }[self.way]
        return empirical(
            f"Latents of a public encoder, with {how}. Nothing is proven, and noise that is drawn afresh for every "
            "release averages out. epsilon is a size of noise, no privacy budget."
        )

    def _modules(self) -> dict[str, nn.Module]:
        modules: dict[str, nn.Module] = {"encoder": self.encoder_, "decoder": self.decoder_}
        return modules if self.directions_ is None else {**modules, "directions": self.directions_}


def principal(z: torch.Tensor, keep: int) -> torch.Tensor:
    """The ``keep`` orthonormal directions (keep, h) along which z (N, h) varies most, each with a sign of its own."""
    centred = (z - z.mean(0)).double()
    _, vectors = torch.linalg.eigh(centred.T @ centred)  # ascending
    directions = vectors.T.flip(0)[:keep]
    largest = directions.gather(1, directions.abs().argmax(1, keepdim=True))
    return torch.mul(directions, largest.sign()).float()
