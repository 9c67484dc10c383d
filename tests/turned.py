"""A small pipeline with keys: a fixed random encoder, records of a batch as each other's decoys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.guarantee import Guarantee, empirical
from sfumato.core.knowledge import Opened
from sfumato.core.randomness import Randomness, Seeded, derive_seed
from sfumato.core.run_folder import RunFolder
from sfumato.core.schema import Schema
from sfumato.core.traits import Traits
from sfumato.mechanisms.base import Mechanism, Progress
from sfumato.mechanisms.parameters import flag, text, whole
from sfumato.nets.training_loop import as_tensor, forward_in_batches


class Turned(Mechanism):
    """``group`` of the keys: "so", "o" or "none" (the identity); ``fresh`` decoys in every repeat, or the same."""

    name = "turned"

    group: str = text(default="o", help="so, o or none")
    d: int = whole(default=2, low=2, high=16, help="rows of a message")
    fresh: bool = flag(default=True, help="other decoys every time")

    @property
    def traits(self) -> Traits:
        return Traits(randomised=True, hides_result=True, rows_per_message=self.d, smallest_batch=self.d)

    def _build(self, schema: Schema) -> None:
        torch.manual_seed(self.seed)
        self.encoder_ = nn.Sequential(nn.Conv2d(schema.shape[0], 6, 5, stride=2, padding=2), nn.LeakyReLU(0.1)).eval()
        places = ((schema.shape[1] + 1) // 2) * ((schema.shape[2] + 1) // 2)
        self.cloud_ = nn.Sequential(nn.Flatten(2), nn.Linear(6 * places, 20, bias=False)).eval()

    def _fit(self, data: Dataset, run: RunFolder | None, progress: Progress, start: Mechanism | None) -> None: ...

    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        drawn = int(randomness.uniform((1,))[0] * 2**53)
        return self._open(x, drawn, drawn).payload

    def _open(self, x: FloatArray, pairs: int, keys: int) -> Opened:
        order = np.random.default_rng(pairs).permutation(len(x))
        places = np.arange(len(x))
        group, place = places // self.d, places % self.d
        rows = np.empty((len(x), self.d), dtype=np.int64)
        for step in range(self.d):  # the records of a group of d in a circle; the last group may be short
            partner = group * self.d + (place + step) % self.d
            rows[order, step] = order[np.where(partner < len(x), partner, (places + step) % len(x))]
        key = self._keys(len(x), np.random.default_rng(keys))
        features = forward_in_batches(self.encoder_, as_tensor(x)).numpy()[rows]
        turned = np.matmul(key, features.reshape(len(x), self.d, -1)).reshape(features.shape)
        return Opened(turned.astype(np.float32), key, rows)

    def _keys(self, count: int, rng: np.random.Generator) -> FloatArray:
        if self.group == "none":
            return np.tile(np.eye(self.d, dtype=np.float32), (count, 1, 1))
        q, r = np.linalg.qr(rng.normal(size=(count, self.d, self.d)))
        q = q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]
        if self.group == "so":
            q[:, :, 0] *= np.linalg.det(q)[:, None]
        return np.asarray(q, dtype=np.float32)

    def secrets(self, data: Dataset, *, seed: int) -> dict[str, FloatArray]:
        return {"key": self.opened(data, seed=seed).key}

    def opened(self, data: Dataset, *, seed: int) -> Opened:
        drawn = int(Seeded(seed).uniform((1,))[0] * 2**53)
        return self._open(data.x, drawn, drawn)

    def visits(self, batches: Sequence[Dataset], *, pool: Dataset | None = None, seed: int) -> tuple[Opened, ...]:
        """Every batch anew, as if the device remembered nothing; decoys from a pool are a function of the record."""
        seeds = [seed, *(derive_seed(seed, "visit", place) for place in range(1, len(batches)))]
        if pool is None:
            return tuple(self.opened(batch, seed=each) for batch, each in zip(batches, seeds, strict=True))
        return tuple(self._beside(batch, pool, seed, each) for batch, each in zip(batches, seeds, strict=True))

    def _beside(self, batch: Dataset, pool: Dataset, device: int, keys: int) -> Opened:
        rng, count = np.random.default_rng(keys), len(batch)
        likes = (batch.x[:, None] == pool.x[None]).reshape(count, len(pool), -1).all(axis=2)
        draws = [np.random.default_rng(derive_seed(device, row.tobytes())) for row in batch.origin.contents]
        decoys = [
            draw.permutation(np.flatnonzero(~like))[: self.d - 1] for draw, like in zip(draws, likes, strict=True)
        ]
        rows = np.column_stack([np.arange(count), count + np.stack(decoys)])
        features = forward_in_batches(self.encoder_, as_tensor(np.concatenate([batch.x, pool.x]))).numpy()[rows]
        key = self._keys(count, rng)
        turned = np.matmul(key, features.reshape(count, self.d, -1)).reshape(features.shape)
        return Opened(turned.astype(np.float32), key, rows)

    def repeated(self, data: Dataset, times: int, *, seed: int) -> tuple[FloatArray, ...]:
        drawn = int(Seeded(seed).uniform((1,))[0] * 2**53)
        others = [derive_seed(seed, number) for number in range(times)]
        return tuple(self._open(data.x, other if self.fresh else drawn, other).payload for other in others)

    def answer(self, data: Dataset, *, seed: int | None = None) -> FloatArray:
        (label,) = data.utility
        return np.eye(len(data.schema.classes(label)), dtype=np.float32)[data.utility[label]]

    def read(self, sent: Opened, keys: FloatArray | None = None) -> FloatArray:
        """The right key reads the first class with certainty, another one as far as it is right."""
        classes = len(next(iter(self.schema_.utility.values())))
        scores = np.zeros((len(sent.key), classes), dtype=np.float32)
        scores[:, 0] = 1.0 if keys is None else (sent.key[:, :, 0] * keys[:, :, 0]).sum(axis=1)
        return scores

    def public_encoder(self) -> nn.Module:
        return self.encoder_

    def public_cloud(self) -> nn.Module:
        return self.cloud_

    def guarantee(self) -> Guarantee:
        return empirical("A pipeline of the tests.")

    def _modules(self) -> dict[str, Any]:
        return {"encoder": self.encoder_}
