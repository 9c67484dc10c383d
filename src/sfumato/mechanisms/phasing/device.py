"""The two sides of split inference: the device that hides and reads, the cloud that works on what it cannot read."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
import numpy.typing as npt
from torch import nn

from sfumato.core.dataset import FloatArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.randomness import Secure
from sfumato.core.schema import Schema
from sfumato.mechanisms.base import check_records
from sfumato.mechanisms.phasing.decoys import Pool
from sfumato.mechanisms.phasing.keys import hide, turn
from sfumato.nets.loop import as_tensor, forward_in_batches

Rows = Callable[[FloatArray], npt.NDArray[np.int64]]
"""Records (N, …) → (N, d) positions: who stands in each message."""


@dataclass(frozen=True)
class Message:
    """What travels: rotated features (N, d, …) and a random name that ties the answer to its key."""

    features: FloatArray
    name: str

    def __len__(self) -> int:
        return len(self.features)


@dataclass(frozen=True)
class Key:
    """The rotations (N, d, d) of one message. It stays on the device: it is not printed and cannot be pickled."""

    message: str
    rotations: FloatArray = field(repr=False)
    single: bool = field(default=False, repr=False)

    def __reduce__(self) -> NoReturn:
        raise UsageError("a key never leaves the device: it cannot be pickled or copied to another process.")


class Device:
    """The encryption module g and the decryption module, on the side that knows the key.

    ``arrange`` says which records of a batch share a message; with a ``pool`` decoys come from there, and a single
    record can be sent.
    """

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        schema: Schema,
        d: int,
        *,
        reflections: bool,
        arrange: Rows,
        pool: Pool | None = None,
    ) -> None:
        self._encoder, self._decoder = encoder, decoder
        self._schema, self.d, self._reflections = schema, d, reflections
        self._arrange, self._pool = arrange, pool

    def encrypt(self, x: npt.ArrayLike) -> tuple[Message, Key]:
        """Eq. 3, x = exp(iθ)[a + bi], for R ∈ O(d): each record's feature and its decoys', turned by a fresh key.

        ``x`` is a batch (N, *shape) or one record (*shape). Keys come from the operating system's secure source.
        """
        records = np.asarray(x, dtype=np.float32)
        single = records.shape == self._schema.shape
        records = records[None] if single else records
        check_records(records, self._schema, "x")
        features = forward_in_batches(self._encoder, as_tensor(records)).numpy()
        if self._pool is not None:
            features, rows = self._pool.beside(records, features, self.d)
        else:
            self._check_enough(len(records))
            rows = self._arrange(records)
        hidden, keys = hide(features, rows, Secure(), reflections=self._reflections)
        name = secrets.token_hex(16)
        return Message(hidden, name), Key(name, keys, single)

    def _check_enough(self, count: int) -> None:
        if count < self.d:
            raise UsageError(
                f"{count} record(s) cannot hide among themselves at d = {self.d}: send at least {self.d} together, "
                "or give the device a pool of decoys."
            )

    def decrypt(self, message: Message, key: Key) -> FloatArray:
        """Class scores (N, classes), or (classes,) for a single record: Rᵀ takes the answer back, row 0 is read."""
        if message.name != key.message:
            raise UsageError("this key belongs to another message: decrypt each answer with the key of its question.")
        count = len(key.rotations)
        check_features(message.features, self.d, None)
        if len(message) != count:
            raise DataError(f"the answer holds {len(message)} records and the key {count}.")
        plain = np.ascontiguousarray(turn(message.features, key.rotations, back=True)[:, 0])
        scores = forward_in_batches(self._decoder, as_tensor(plain)).numpy()
        return scores[0] if key.single else scores


class Cloud:
    """The processing module Φ: takes a message, gives a message; it never sees a key."""

    def __init__(self, network: nn.Module, d: int, shape: tuple[int, ...]) -> None:
        self._network, self._d, self._shape = network, d, shape

    def __call__(self, message: Message) -> Message:
        check_features(message.features, self._d, self._shape)
        answer = forward_in_batches(self._network, as_tensor(np.asarray(message.features, dtype=np.float32)))
        return Message(answer.numpy(), message.name)


def check_features(features: FloatArray, d: int, shape: tuple[int, ...] | None) -> None:
    """Raise ``DataError`` unless this is a message of dimension d (and of this feature shape) with finite numbers."""
    if features.ndim < 3 or features.shape[1] != d:
        raise DataError(
            f"a message of this network has {d} components on axis 1, this one has shape {features.shape}: "
            "device and cloud must be fitted with one d."
        )
    if shape is not None and features.shape[2:] != shape:
        raise DataError(f"features in this message have shape {features.shape[2:]}, the cloud was built for {shape}.")
    if len(features) == 0:
        raise DataError("the message holds no records.")
    finite = np.isfinite(features).reshape(len(features), -1).all(axis=1)
    if not finite.all():
        raise DataError(f"record {int(np.argmin(finite))} of the message holds NaN or infinite values.")
