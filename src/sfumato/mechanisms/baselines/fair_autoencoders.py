"""``vfae`` and ``lmifr``: autoencoders whose latent is to say nothing about s, the private labels.

Both tell encoder and decoder what s is, q(z|x, s) and p(x|z, s): z need not carry it, and a penalty sees to it that it
does not. They are the comparators of Chen, Navidi, Ermon and Rajagopal, Table 2. The device must know s to release a
record, and whoever decodes one must, too.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.guarantee import Guarantee, empirical
from sfumato.core.randomness import Randomness, derive_seed
from sfumato.core.run_folder import RunFolder
from sfumato.core.schema import Schema
from sfumato.core.traits import Traits
from sfumato.mechanisms.base import Mechanism, Progress
from sfumato.mechanisms.baselines.mmd import groups_mmd
from sfumato.mechanisms.filter.base_networks import Spread
from sfumato.mechanisms.filter.binary_columns import BinaryColumns
from sfumato.mechanisms.filter.vae_networks import elu_chain, kl_to_prior, posterior
from sfumato.mechanisms.halves import Half, Halves, noise_port, payload_port, private_port, reader, record_port
from sfumato.mechanisms.halves.shipped_networks import ToldEncoder
from sfumato.mechanisms.label_targets import label_loss, target, told
from sfumato.mechanisms.parameters import learning_rate, number, whole
from sfumato.mechanisms.training import CONTINUED, train
from sfumato.nets.training_loop import adam, as_tensor, decay_rate, forward_in_batches, minibatches, take_step

_HIDDEN = (300, 300)
"""Encoder and decoder, as ``vae``'s: the rows of a table differ by the method alone."""
_HEAD = 100
_PREDICTOR_STEPS = 5
"""A batch: with 2 the predictor lagged behind, and a fresh probe read more than the bound."""


class FairAutoencoder(Mechanism):
    """Releases z ~ q(z|x, s); s is every private label of the schema. A subclass says what one batch trains."""

    serves_numbers = True

    latent: int = whole(default=10, low=1, high=4096, help="numbers in a latent")
    rate: float = learning_rate(default=1e-3)
    epochs: int = whole(default=30, low=1, high=10_000, help="passes over the owner's records")
    batch: int = whole(default=256, low=8, high=65_536, help="records in a mini-batch")

    traits = Traits(role="baseline", randomised=True, reads_private=True)

    def _build(self, schema: Schema) -> None:
        torch.manual_seed(derive_seed(self.seed, self.name, "weights"))
        columns = BinaryColumns(schema.columns) if schema.kind == "table" else None
        size = schema.size if columns is None else columns.size
        self.columns_: nn.Module = nn.Flatten() if columns is None else columns
        self._private = [len(classes) for classes in schema.private.values()]  # numbers are refused
        self.encoder_ = elu_chain(size + sum(self._private), *_HIDDEN, 2 * self.latent)
        self.decoder_ = elu_chain(self.latent + sum(self._private), *_HIDDEN, size)

    def _copies(self) -> int:
        return 0

    def _fit(self, data: Dataset, run: RunFolder | None, progress: Progress, start: Mechanism | None) -> None:
        epochs = self.epochs
        if start is not None:
            self.load_state(start.state())
            epochs = max(1, math.ceil(CONTINUED * self.epochs))
        elif isinstance(self.columns_, BinaryColumns):
            self.columns_.learn(data.x)
        x, s = as_tensor(data.x), self._codes(data.private)
        y = target(*next(iter(data.utility.items())), data.schema)
        self._prepare(s)
        optimisers = {name: adam(list(parts), self.rate) for name, parts in self._trained().items()}

        def epoch(number: int) -> dict[str, float]:
            seed = derive_seed(self.seed, self.name, "epoch", number)
            torch.manual_seed(seed)
            batches = list(minibatches(len(x), self.batch, seed))
            means: dict[str, float] = {}
            for place, rows in enumerate(batches):
                for optimiser in optimisers.values():
                    decay_rate(optimiser, (number + place / len(batches)) / epochs)
                for name, value in self._step(self.columns_(x[rows]), s[rows], y[rows], optimisers).items():
                    means[name] = means.get(name, 0.0) + value.item() / len(batches)
            return means

        train(self, epochs, epoch, optimisers, run, progress)

    def _prepare(self, s: Tensor) -> None:
        """What is learnt from the private labels before the first epoch."""

    @abstractmethod
    def _trained(self) -> dict[str, Iterator[nn.Parameter]]:
        """The parameters of each optimiser, by its name."""

    @abstractmethod
    def _step(self, x: Tensor, s: Tensor, y: Tensor, optimisers: Mapping[str, torch.optim.Adam]) -> dict[str, Tensor]:
        """Train on a batch: vectors x (B, D) in [0, 1], codes s (B, private labels) and targets y (B); the
        losses, by name."""

    def _codes(self, private: Mapping[str, IntArray]) -> Tensor:
        """One column of codes a private label, in the schema's order."""
        return torch.stack([as_tensor(private[label]) for label in self.schema_.private], dim=1)

    def _with(self, x: Tensor, s: Tensor) -> Tensor:
        """x beside the one-hot codes of s."""
        return torch.cat([x, *(F.one_hot(s[:, i], n).to(x.dtype) for i, n in enumerate(self._private))], dim=1)

    def _reconstruction(self, x: Tensor, s: Tensor, z: Tensor) -> Tensor:
        """−log p(x|z, s) in nats, Bernoulli, as a mean over records."""
        logits = self.decoder_(self._with(z, s))
        return F.binary_cross_entropy_with_logits(logits, x, reduction="sum") / len(x)

    def posterior(self, x: FloatArray, private: Mapping[str, IntArray]) -> tuple[Tensor, Tensor]:
        """Mean and variance of q(z|x, s) for checked records, (N, d) each."""
        vectors = forward_in_batches(self.columns_, as_tensor(x))
        return posterior(forward_in_batches(self.encoder_, self._with(vectors, self._codes(private))))

    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        mean, variance = (part.numpy() for part in self.posterior(x, private))
        return np.asarray(mean + np.sqrt(variance) * randomness.normal(mean.shape), dtype=np.float32)

    def halves(self) -> Halves:
        """z ~ q(z|x, s) on the device."""
        inputs = (record_port(self.schema_), private_port(self.schema_), noise_port((self.latent,), "normal"))
        return Halves(Half(ToldEncoder(self.columns_, Spread(self.encoder_)), inputs, payload_port((self.latent,))))

    def _modules(self) -> dict[str, nn.Module]:
        return {"columns": self.columns_, "encoder": self.encoder_, "decoder": self.decoder_}


class VFAE(FairAutoencoder):
    """Variational Fair Autoencoder (Louizos, Swersky, Li, Welling and Zemel 2015), the supervised case.

    With z₁ ~ q(z₁|x, s), z₂ ~ q(z₂|z₁, y) and the first utility label as y it minimises the mean of

        − log p(x|z₁, s) − log p(z₁|z₂, y) + log q(z₁|x, s) + KL(q(z₂|z₁, y) ‖ N(0, I))
        − ``alpha`` · log q(y|z₁)  +  ``mmd`` · MMD²(z₁ | s = 0, z₁ | s = 1)

    and releases z₁. Of a number y, q(y|z₁) is normal, so that −log q(y|z₁) is its squared error but for constants.
    """

    name = "vfae"
    knob = "mmd"

    mmd: float = number(default=1000.0, low=0.0, high=1e6, help="weight of the discrepancy between private groups")
    alpha: float = number(default=1.0, low=0.0, high=1e6, help="weight of the label's loss")

    def _build(self, schema: Schema) -> None:
        super()._build(schema)
        self._classes = schema.width(next(iter(schema.utility)))
        self.label_encoder_ = elu_chain(self.latent + self._classes, _HEAD, 2 * self.latent)
        self.label_decoder_ = elu_chain(self.latent + self._classes, _HEAD, 2 * self.latent)
        self.classifier_ = elu_chain(self.latent, _HEAD, self._classes)

    def _trained(self) -> dict[str, Iterator[nn.Parameter]]:
        return {"vfae": nn.ModuleList(self._modules().values()).parameters()}

    def _step(self, x: Tensor, s: Tensor, y: Tensor, optimisers: Mapping[str, torch.optim.Adam]) -> dict[str, Tensor]:
        mean1, variance1 = posterior(self.encoder_(self._with(x, s)))
        z1 = mean1 + variance1.sqrt() * torch.randn_like(mean1)
        label = told(y, self._classes)
        mean2, variance2 = posterior(self.label_encoder_(torch.cat([z1, label], dim=1)))
        z2 = mean2 + variance2.sqrt() * torch.randn_like(mean2)
        prior_mean, prior_variance = posterior(self.label_decoder_(torch.cat([z2, label], dim=1)))
        reconstruction = self._reconstruction(x, s, z1)
        # E log q(z₁|x, s) − log p(z₁|z₂, y): the entropy exactly, the rest at the sample that z₂ was drawn from
        upper = (
            0.5 * ((z1 - prior_mean).square() / prior_variance + (prior_variance / variance1).log() - 1.0).sum(1).mean()
        )
        kl = kl_to_prior(mean2, variance2).mean()
        served = label_loss(self.classifier_(z1), y)
        mmd = groups_mmd(z1, s)
        loss = reconstruction + upper + kl + self.alpha * served + self.mmd * mmd
        take_step(optimisers["vfae"], loss)
        return {"reconstruction": reconstruction, "kl": upper + kl, "label": served, "mmd": mmd}

    def predict(self, payload: FloatArray) -> FloatArray:
        """Logits of q(y|z₁)."""
        return forward_in_batches(self.classifier_, as_tensor(payload)).numpy()

    def halves(self) -> Halves:
        """z₁ ~ q(z₁|x, s) on the device, q(y|z₁) in the cloud."""
        served = next(iter(self.schema_.utility))
        cloud = reader(self.classifier_, payload_port((self.latent,)), self._classes)
        return replace(super().halves(), cloud=cloud, labels=(served,))

    def guarantee(self) -> Guarantee:
        return empirical(
            f"Latent of a variational fair autoencoder, MMD between private groups penalised with weight {self.mmd:g}: "
            "the groups' latents are alike in training, as far as the kernel sees. Nothing is proven."
        )

    def _modules(self) -> dict[str, nn.Module]:
        heads = {"label_encoder": self.label_encoder_, "label_decoder": self.label_decoder_}
        return {**super()._modules(), **heads, "classifier": self.classifier_}


class LMIFR(FairAutoencoder):
    """Lagrangian Mutual-Information-based Fair Representations (Song, Kalluri, Grover, Zhao and Ermon 2018).

    Minimises −E log p(x|z, s) (which bounds I(x; z|s) from below) under two bounds of I(z; s), in nats a record:

        C₁ = E KL(q(z|x, s) ‖ N(0, I)) ≤ ``capacity``      loose, of the whole content of z
        C₂ = E log p(s|z) − log p(s)   ≤ ``information``   tight, if the predictor p(s|z) is as good as can be

    as a game: encoder and decoder descend −log p(x|z, s) + λ₁(C₁ − ε₁) + λ₂(C₂ − ε₂), the predictor ascends C₂, and the
    multipliers ascend by λ ← max(0, λ + ``ascent`` · (C − ε)). With several private labels C₂ is the sum over them.
    No utility label is used: what is useful is in the reconstruction.
    """

    name = "lmifr"
    knob = "information"

    information: float = number(default=0.01, low=0.0, high=1e6, help="ε₂: nats that z may hold about s")
    capacity: float = number(default=6.0, low=0.0, high=1e6, above_low=True, help="ε₁: nats that z may hold in all")
    ascent: float = number(default=0.1, low=0.0, high=1e3, above_low=True, help="step of the multipliers")

    def _build(self, schema: Schema) -> None:
        super()._build(schema)
        self.predictor_ = elu_chain(self.latent, _HEAD, _HEAD, sum(self._private))
        self.constraints_ = Constraints(sum(self._private))

    def _prepare(self, s: Tensor) -> None:
        marginal = self._with(torch.empty(len(s), 0), s).mean(0)
        self.constraints_.log_marginal.copy_(marginal.clamp_min(1e-12).log())

    def _trained(self) -> dict[str, Iterator[nn.Parameter]]:
        return {
            "autoencoder": nn.ModuleList([self.encoder_, self.decoder_]).parameters(),
            "predictor": self.predictor_.parameters(),
        }

    def _step(self, x: Tensor, s: Tensor, y: Tensor, optimisers: Mapping[str, torch.optim.Adam]) -> dict[str, Tensor]:
        mean, variance = posterior(self.encoder_(self._with(x, s)))
        z = mean + variance.sqrt() * torch.randn_like(mean)
        reconstruction = self._reconstruction(x, s, z)
        kl, information = kl_to_prior(mean, variance).mean(), self._information(z, s)
        excess = torch.stack([kl - self.capacity, information - self.information])
        take_step(optimisers["autoencoder"], reconstruction + (self.constraints_.multipliers * excess).sum())
        self.constraints_.ascend(excess.detach(), self.ascent)
        for _ in range(_PREDICTOR_STEPS):
            z = (mean + variance.sqrt() * torch.randn_like(mean)).detach()
            take_step(optimisers["predictor"], -self._information(z, s))
        return {
            "reconstruction": reconstruction,
            "kl": kl,
            "information": information,
            **{f"lambda{i + 1}": value for i, value in enumerate(self.constraints_.multipliers)},
        }

    def _information(self, z: Tensor, s: Tensor) -> Tensor:
        """C₂ on a batch."""
        parts = self.predictor_(z).split(self._private, dim=1)
        log_posterior = torch.cat([part.log_softmax(1) for part in parts], dim=1)
        one_hot = self._with(z[:, :0], s)
        return (one_hot * (log_posterior - self.constraints_.log_marginal)).sum(1).mean()

    def guarantee(self) -> Guarantee:
        return empirical(
            f"Latent trained to hold at most {self.information:g} nats about the private labels, as its own predictor "
            "measured them on the training records. Another attacker may read more."
        )

    def _modules(self) -> dict[str, nn.Module]:
        return {**super()._modules(), "predictor": self.predictor_, "constraints": self.constraints_}


class Constraints(nn.Module):
    """λ₁ and λ₂, and log p(s) of each class of each private label: state of the training, without gradients."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.register_buffer("multipliers", torch.ones(2))
        self.register_buffer("log_marginal", torch.zeros(classes))
        self.multipliers: Tensor
        self.log_marginal: Tensor

    def ascend(self, excess: Tensor, rate: float) -> None:
        """λ ← max(0, λ + rate · (C − ε))."""
        self.multipliers.add_(rate * excess).clamp_(min=0.0)
