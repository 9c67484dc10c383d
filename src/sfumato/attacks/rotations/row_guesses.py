"""Which of the d known records behind a message is the one it was sent for?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from sfumato.attacks.base import Attack, Guess, Measured
from sfumato.attacks.rotations.direction_critic import InverseCritic
from sfumato.attacks.rotations.inverse_frame import InverseFrame
from sfumato.attacks.rotations.message_algebra import (
    device_missing,
    encoder_missing,
    features_of,
    flat_rows,
    most_records,
    own_device,
)
from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.intervals import share_interval
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.metrics import Values
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release
from sfumato.nets.training_loop import as_tensor


class RowAttack(Attack):
    """The guess is a place in each message's line-up, ``knowledge.line_ups``, (N,).

    This is what a key from O(d) promises to keep secret: no attack may do better than 1/d.
    """

    threat = "row"
    undefended: ClassVar[Mapping[str, float]] = {"rate": 1.0}
    """With the identity for a key the record stands first."""

    def obstacle(self, knowledge: Knowledge) -> str | None:
        missing = super().obstacle(knowledge) or device_missing(knowledge)
        return missing or ("needs the records behind each message" if knowledge.line_ups is None else None)

    def trivial(self, knowledge: Knowledge, n: int) -> FloatArray:
        """Without the message every row is as good: −1/d, scored as 1/d."""
        assert knowledge.line_ups is not None  # obstacle() has seen to it
        return np.full(n, -1.0 / knowledge.line_ups.shape[1], dtype=np.float32)

    def measure(self, guess: Guess, truth: Truth) -> list[Measured]:
        found = np.where(guess < 0, -guess, guess == truth.positions()).astype(np.float64)
        interval = share_interval(found, truth.open().ids)
        return [Measured("rate", "lower", float(found.mean()), interval, (0.0, 1.0), primary=True)]


class RowsByKey(RowAttack):
    """Recovers the key for every candidate as the first row, and takes the most plausible key.

    With all d features known the key follows by orthogonal Procrustes, up to the order of the rows. Boosted trees learn
    from the attacker's own keys what a true one looks like: a rotation with its rows swapped is a reflection.
    """

    name = "rows-key"
    title = "Right row, by the key it implies"

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return super().obstacle(knowledge) or encoder_missing(knowledge)

    def guess(self, release: Release, knowledge: Knowledge) -> IntArray:
        line_ups = knowledge.line_ups
        assert line_ups is not None  # obstacle() has seen to it
        n, d = line_ups.shape[:2]
        keys = []
        for start in range(0, n, 256):
            known = features_of(knowledge, line_ups[start : start + 256].reshape(-1, *line_ups.shape[2:]))
            message = as_tensor(release.payload[start : start + 256])
            keys.append(_procrustes(message, known.view(len(message), d, *known.shape[1:])))
        model = self._model(knowledge, d)
        plausible = model.predict_proba(_described(torch.cat(keys).numpy()).reshape(n * d, -1))[:, 1]
        return np.asarray(plausible.reshape(n, d).argmax(axis=1), dtype=np.int64)

    def _model(self, knowledge: Knowledge, d: int) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        seed = derive_seed(knowledge.seed, self.name) % 2**32
        rng = np.random.default_rng(seed)
        sample = knowledge.auxiliary.take(rng.permutation(len(knowledge.auxiliary))[: most_records(knowledge)])
        keys = own_device(knowledge, sample).key
        shuffled = rng.permuted(np.tile(np.arange(d), (len(keys), 1)), axis=1)  # as a line-up would stand
        keys = np.take_along_axis(keys, shuffled[:, None, :], axis=2)
        model = HistGradientBoostingClassifier(max_iter=100, early_stopping=False, random_state=seed)
        return model.fit(_described(keys).reshape(len(keys) * d, -1), (shuffled == 0).reshape(-1))


def _procrustes(message: Tensor, known: Tensor) -> Tensor:
    """The orthogonal matrix that turns the known rows into the message, (B, d, …) twice → (B, d, d)."""
    u, _, v = torch.linalg.svd((flat_rows(message) @ flat_rows(known).mT).double())
    key: Tensor = u @ v
    return key


def _described(keys: Guess) -> Values:
    """Every key with each row in turn moved to the front, and its determinant: (N, d, d) → (N, d, d² + 1)."""
    n, d = keys.shape[:2]
    described = np.empty((n, d, d * d + 1))
    for first in range(d):
        order = [first, *(row for row in range(d) if row != first)]
        described[:, first, :-1] = keys[:, :, order].reshape(n, -1)
        described[:, first, -1] = np.sign(np.linalg.det(keys[:, :, order].astype(np.float64)))
    return described


class RowsByDecoding(RowAttack):
    """The candidate nearest to the single guess of the inverse network on frames."""

    name = "rows-decode"
    title = "Right row, by decoding"

    inverse: InverseFrame

    def guess(self, release: Release, knowledge: Knowledge) -> IntArray:
        assert knowledge.line_ups is not None  # obstacle() has seen to it
        guess = self.inverse.guess(release, knowledge)
        distance = [
            ((knowledge.line_ups[:, row] - guess) ** 2).reshape(len(guess), -1).sum(axis=1)
            for row in range(knowledge.line_ups.shape[1])
        ]
        return np.asarray(np.argmin(distance, axis=0), dtype=np.int64)


class RowsByCritic(RowAttack):
    """The candidate whose feature the critic likes best.

    It reads no message: it wins where decoys are of another kind than records, whatever the key.
    """

    name = "rows-critic"
    title = "Right row, by a critic"

    inverse: InverseCritic

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return super().obstacle(knowledge) or encoder_missing(knowledge)

    def guess(self, release: Release, knowledge: Knowledge) -> IntArray:
        assert knowledge.line_ups is not None  # obstacle() has seen to it
        n, d = knowledge.line_ups.shape[:2]
        parts = np.array_split(knowledge.line_ups.reshape(n * d, *knowledge.line_ups.shape[2:]), max(1, n * d // 1024))
        scores = [self.inverse.judge(features_of(knowledge, part), knowledge) for part in parts]
        return np.asarray(np.concatenate(scores).reshape(n, d).argmax(axis=1), dtype=np.int64)
