"""Baselines that release deep features: plain (``dnn``), or after PCA and Laplace noise (``dnn-resized``)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.guarantee import Guarantee, empirical
from sfumato.core.randomness import Randomness, Seeded, derive_seed
from sfumato.core.run_folder import RunFolder
from sfumato.core.schema import Schema
from sfumato.core.traits import Traits
from sfumato.mechanisms.base import Mechanism, Progress
from sfumato.mechanisms.encoder_mechanism import Discriminative, PlainNetwork
from sfumato.mechanisms.halves import Halves, plain_halves
from sfumato.mechanisms.halves.shipped_networks import Added
from sfumato.mechanisms.parameters import flag, number, whole
from sfumato.nets.encoders import classifier, output_shape
from sfumato.nets.training_loop import as_tensor, forward_in_batches, minibatches


class DNN(PlainNetwork):
    """``dnn``: features of an ordinary network with the same encoder and classifier as ``ran``."""

    name = "dnn"

    traits = Traits(role="baseline")

    def guarantee(self) -> Guarantee:
        return empirical("Plain features: trained for the task alone, without any defence.")


class _Projection(nn.Module):
    """(z − mean)·basis, in units of the kept components' root-mean-square deviation."""

    def __init__(self, size: int, components: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("basis", torch.zeros(size, components))
        self.mean: Tensor
        self.basis: Tensor

    def learn(self, z: Tensor) -> None:
        """Principal components of features z (N, size)."""
        self.mean = z.mean(0)
        centred = z - self.mean
        values, vectors = torch.linalg.eigh(centred.T @ centred / len(z))
        keep = self.basis.shape[1]
        unit = values[-keep:].clamp(min=0).mean().sqrt().clamp(min=1e-12)
        self.basis = vectors[:, -keep:].flip(1) / unit

    def forward(self, z: Tensor) -> Tensor:  # (B, …) → (B, components)
        return (z.flatten(1) - self.mean) @ self.basis


class DNNResized(DNN):
    """``dnn-resized``: features reduced by PCA, plus Laplace noise (Ossia et al. 2017).

    The classifier is trained on what leaves, with fresh noise every epoch; with ``clean`` on components without noise,
    as the paper of ``ran`` does.
    """

    name = "dnn-resized"
    knob = "noise"

    noise: float = number(default=0.5, low=0.0, high=100.0, above_low=True, help="scale of the Laplace noise")
    clean: bool = flag(default=False, help="train the classifier without the noise, as the paper of ran does")
    components: int = whole(default=64, low=1, high=100_000, help="principal components that leave")

    traits = Traits(role="baseline", randomised=True)

    def _build(self, schema: Schema) -> None:
        super()._build(schema)
        size = torch.Size(output_shape(self.encoder_, schema.shape)).numel()
        components = min(self.components, size)
        self.projection_ = _Projection(size, components)
        self.resized_classifier_ = classifier((components,), self._task(schema).width)

    def _copies(self) -> int:
        return 2  # features of all records, before and after the mean is taken off

    def _fit(self, data: Dataset, run: RunFolder | None, progress: Progress, start: Mechanism | None) -> None:
        if start is None:
            super()._fit(data, run, progress, None)
        else:
            self.load_state(start.state())  # noise enters after the encoder: only the last classifier changes
        z = forward_in_batches(self.encoder_, as_tensor(data.x)).flatten(1)
        self.projection_.learn(z)
        self._fit_classifier(self.projection_(z), self._task(data.schema).codes(data))
        if start is not None:
            progress(1, 1, {})

    def _fit_classifier(self, scores: Tensor, y: Tensor) -> None:
        """Train the receiver's classifier on components, noisy unless ``clean``."""
        game = Discriminative(nn.Identity(), self.resized_classifier_, self._task(self.schema_), self.rate)
        self.resized_classifier_.train()
        for epoch in range(self.epochs):
            seed = derive_seed(self.seed, "dnn-resized", "classifier", epoch)
            randomness = Seeded(seed)
            for rows in minibatches(len(scores), self.batch, seed):
                seen = scores[rows]
                if not self.clean:
                    seen = seen + torch.as_tensor(randomness.laplace(tuple(seen.shape), self.noise)).float()
                game.play(seen, y[rows])

    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        features = forward_in_batches(nn.Sequential(self.encoder_, self.projection_), as_tensor(x)).numpy()
        return features + randomness.laplace(features.shape, self.noise).astype(np.float32)

    def predict(self, payload: FloatArray) -> FloatArray:
        return forward_in_batches(self.resized_classifier_, as_tensor(payload)).numpy()

    def halves(self) -> Halves:
        """E, projection and noise on the device, the classifier of components in the cloud."""
        device = Added(nn.Sequential(self.encoder_, self.projection_), self.noise)
        width, labels = (self.projection_.basis.shape[1],), self._task(self.schema_).labels
        return plain_halves(device, self.resized_classifier_, self.schema_, labels, noise="laplace", width=width)

    def _modules(self) -> dict[str, nn.Module]:
        return {
            **super()._modules(),
            "projection": self.projection_,
            "resized_classifier": self.resized_classifier_,
        }

    def guarantee(self) -> Guarantee:
        return empirical(
            f"Features reduced to {self.projection_.basis.shape[1]} principal components, with Laplace noise of scale "
            f"{self.noise:g}. Features are unbounded, so the noise carries no differential-privacy statement."
        )
