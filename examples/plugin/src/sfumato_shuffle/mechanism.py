"""``shuffle``: the pixels of every record in a secret order, the same for all records of a device.

A classic that does not work: each pixel keeps its brightness, and how bright it is on average gives its place away.
``MatchPixels`` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import nn

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.guarantee import Guarantee, empirical
from sfumato.core.randomness import Randomness, Seeded
from sfumato.core.run_folder import RunFolder
from sfumato.core.schema import Schema
from sfumato.core.traits import Traits
from sfumato.mechanisms.base import Mechanism, Progress
from sfumato.mechanisms.device_secret import check_secret_file, device_secret, drawn_secret
from sfumato.mechanisms.parameters import number


class Shuffle(Mechanism):
    """Releases x[order], where order is a secret permutation of a share of the pixels."""

    name = "shuffle"
    knob = "share"

    share: float = number(default=1.0, low=0.0, high=1.0, above_low=True, help="share of the pixels that are shuffled")

    @property
    def traits(self) -> Traits:
        return Traits(randomised=True, needs_labels=False)

    def _build(self, schema: Schema) -> None:
        self._secret = b""

    def _fit(self, data: Dataset, run: RunFolder | None, progress: Progress, start: Mechanism | None) -> None:
        """There is nothing to learn: the order comes from the device's secret."""

    def _modules(self) -> dict[str, nn.Module]:
        return {}

    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        order = self._order(self._own_secret(randomness))
        return x.reshape(len(x), -1)[:, order]

    def _own_secret(self, randomness: Randomness) -> bytes:
        """The device's secret, never part of a run folder; repeatable for experiments."""
        if isinstance(randomness, Seeded):
            return drawn_secret(randomness)
        if not self._secret:
            self._secret = device_secret()
        return self._secret

    def _order(self, secret: bytes) -> IntArray:
        """Where each released pixel came from, (size,)."""
        rng = np.random.default_rng(np.frombuffer(secret, dtype=np.uint64))
        order = np.arange(self.schema_.size)
        moved = rng.permutation(len(order))[: round(self.share * len(order))]
        order[np.sort(moved)] = moved
        return order

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_secret": b""}  # a copy in another process is another device

    # capability Keyed: the scorer may know the secret behind a release
    def secrets(self, data: Dataset, *, seed: int) -> dict[str, FloatArray]:
        order = self._order(drawn_secret(Seeded(seed))).astype(np.float32)
        return {"order": np.tile(order, (len(data), 1))}

    # capability NeedsSecret: without a stored secret two releases would have two orders
    def check_writing(self, *, again: bool = False) -> None:
        check_secret_file("a second release of these records would have another order.")

    def guarantee(self) -> Guarantee:
        return empirical("Pixels in a secret order. Nothing is proven: see the attacks on the order.")
