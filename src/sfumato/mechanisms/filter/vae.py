"""``vae``: the latent of a variational autoencoder, the representation that every filter starts from.

Trained once, without any label, and then frozen (step 1 of Chen, Navidi, Ermon and Rajagopal). By itself it hides
nothing on purpose: it is the undefended row of the filter's tables.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.guarantee import Guarantee, empirical
from sfumato.core.randomness import Randomness, derive_seed
from sfumato.core.run_folder import RunFolder
from sfumato.core.schema import Schema
from sfumato.core.traits import Traits
from sfumato.mechanisms.base import Mechanism, Progress
from sfumato.mechanisms.filter.base_networks import Decoded, Spread
from sfumato.mechanisms.filter.binary_columns import BinaryColumns
from sfumato.mechanisms.filter.vae_networks import AUTOENCODERS, kl_to_prior, lipschitz_excess, posterior
from sfumato.mechanisms.halves import Halves, plain_halves
from sfumato.mechanisms.halves.shipped_networks import Sampled
from sfumato.mechanisms.parameters import choice, learning_rate, number, whole
from sfumato.mechanisms.training import train
from sfumato.nets.training_loop import (
    adam,
    as_tensor,
    channels_last,
    decay_rate,
    forward_in_batches,
    minibatches,
    take_step,
)

_WIDE = 48
"""Pictures of at least this side get a convolutional autoencoder."""


_NORMS = {"l1": 1, "l2": 2}
"""p of E‖x − x′‖_p (§6.1)."""


class VAE(Mechanism):
    """Releases z ~ q(z|x)."""

    name = "vae"
    title = "a variational autoencoder"
    decodes = True
    spare = ("decoder",)

    latent: int = whole(default=10, low=1, high=4096, help="d, the numbers in a latent")
    architecture: str = choice(default="auto", options=("auto", *AUTOENCODERS), help="auto: conv from 48 pixels on")
    likelihood: str = choice(default="auto", options=("auto", "bernoulli", "l2", "l1"), help="auto: l2 for conv")
    gamma: float = number(default=1.0, low=0.0, high=1e6, above_low=True, help="γ of Eq. 1: weight of the KL term")
    kappa: float = number(default=0.0, low=0.0, high=1e6, help="κ of Eq. 6: weight of the Lipschitz penalty")
    lipschitz: float = number(default=1.0, low=0.0, high=1e6, above_low=True, help="C_L of Eq. 6; no effect at kappa=0")
    rate: float = learning_rate(default=1e-3)
    epochs: int = whole(default=20, low=1, high=10_000, help="passes over the owner's records")
    batch: int = whole(default=100, low=8, high=65_536, help="records in a mini-batch")

    serves_numbers = True  # it looks at no label
    traits = Traits(role="control", unprotected="latent", randomised=True)

    def _build(self, schema: Schema) -> None:
        torch.manual_seed(derive_seed(self.seed, "vae", "weights"))
        wide = schema.kind == "image" and min(schema.shape[1:]) >= _WIDE and not any(s % 16 for s in schema.shape[1:])
        kind = self.architecture if self.architecture != "auto" else "conv" if wide else "mlp"
        self._columns = BinaryColumns(schema.columns) if schema.kind == "table" else None
        shape = schema.shape if self._columns is None else (self._columns.size,)
        try:
            encoder, decoder = AUTOENCODERS[kind](shape, self.latent)
        except ValueError as error:
            raise UsageError(
                f"vae: architecture '{kind}' cannot take records of shape {schema.shape}: {error}."
            ) from None
        usual = "bernoulli" if kind == "mlp" else "l2"
        self._likelihood = usual if self.likelihood == "auto" else self.likelihood
        self.encoder_ = channels_last(encoder if self._columns is None else nn.Sequential(self._columns, encoder))
        self.decoder_ = channels_last(decoder)

    def _copies(self) -> int:
        return 0

    def _fit(self, data: Dataset, run: RunFolder | None, progress: Progress, start: Mechanism | None) -> None:
        if start is not None:
            self.load_state(start.state())
        elif self._columns is not None:
            self._columns.learn(data.x)
        x = as_tensor(data.x)
        parameters = [*self.encoder_.parameters(), *self.decoder_.parameters()]
        optimiser = adam(parameters, self.rate)

        def epoch(number: int) -> dict[str, float]:
            seed = derive_seed(self.seed, "vae", "epoch", number)
            torch.manual_seed(seed)
            batches = list(minibatches(len(x), self.batch, seed))
            means: dict[str, float] = {}
            for place, rows in enumerate(batches):
                decay_rate(optimiser, (number + place / len(batches)) / self.epochs)
                loss, terms = self._loss(x[rows])
                take_step(optimiser, loss)
                for name, value in terms.items():
                    means[name] = means.get(name, 0.0) + value.item() / len(batches)
            return means

        train(self, self.epochs, epoch, {"vae": optimiser}, run, progress)

    def _loss(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Eq. 1 as a mean over records, or Eq. 6."""
        target = x if self._columns is None else self._columns(x)
        mean, variance = posterior(self.encoder_(x))
        logits = self.decoder_(mean + variance.sqrt() * torch.randn_like(mean))
        if self._likelihood in _NORMS:
            off = (torch.sigmoid(logits) - target).flatten(1)
            reconstruction = off.norm(p=_NORMS[self._likelihood], dim=1).mean()
        else:
            reconstruction = F.binary_cross_entropy_with_logits(logits, target, reduction="sum") / len(x)
        kl = kl_to_prior(mean, variance).mean()
        loss = reconstruction + self.gamma * kl
        if self.kappa > 0:
            loss = loss + self.kappa * lipschitz_excess(self.decoder_, mean, variance, self.lipschitz)
        return loss, {"reconstruction": reconstruction, "kl": kl}

    def posterior(self, x: FloatArray) -> tuple[Tensor, Tensor]:
        """Mean and variance of q(z|x) for checked records, (N, d) each: what a filter trains on."""
        return posterior(forward_in_batches(self.encoder_, as_tensor(x)))

    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        mean, variance = (part.numpy() for part in self.posterior(x))
        return np.asarray(mean + np.sqrt(variance) * randomness.normal(mean.shape), dtype=np.float32)

    def decode(self, payload: FloatArray) -> FloatArray:
        """g_d(z): pixels in [0, 1]; for a table the likeliest record, with its original columns."""
        if "decoder" in self.absent_:
            raise DataError(
                "this device has the autoencoder's encoder only: decoding takes checkpoint/decoder.safetensors."
            )
        logits = forward_in_batches(self.decoder_, as_tensor(payload))
        return (torch.sigmoid(logits) if self._columns is None else self._columns.records(logits)).numpy()

    def guarantee(self) -> Guarantee:
        return empirical("The latent of a variational autoencoder, trained without any thought of privacy: no defence.")

    def public_encoder(self) -> nn.Module:
        return self.encoder_

    def posterior_network(self) -> nn.Module:
        return Spread(self.encoder_)

    def decoder_network(self) -> nn.Module:
        return Decoded(self.decoder_, self._columns)

    def halves(self) -> Halves:
        """z ~ q(z|x) on the device; it has no receiver of its own."""
        device = Sampled(self.posterior_network())
        return plain_halves(device, None, self.schema_, (), noise="normal", width=(self.latent,))

    @property
    def digest(self) -> str:
        """SHA-256 of the encoder: a filter belongs to the latents that it makes."""
        hasher = hashlib.sha256()
        for name, tensor in sorted(self.encoder_.state_dict().items()):
            hasher.update(name.encode())
            hasher.update(tensor.detach().contiguous().numpy().tobytes())
        return hasher.hexdigest()

    def _modules(self) -> dict[str, nn.Module]:
        return {"encoder": self.encoder_, "decoder": self.decoder_}
