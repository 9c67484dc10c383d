"""The two sides of split inference: the device that hides and reads, the cloud that works on what it cannot read."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import numpy.typing as npt
from torch import nn

from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.origin import Origin
from sfumato.core.randomness import Randomness, Secure
from sfumato.core.schema import Schema
from sfumato.mechanisms.phase.arrangement import Arrangement
from sfumato.mechanisms.phase.keys import hide, turn
from sfumato.mechanisms.record_checks import check_records
from sfumato.nets.training_loop import as_tensor, forward_in_batches


@dataclass(frozen=True)
class Message:
    """What travels: rotated features (N, d, …) and a random name that ties the answer to its key."""

    features: FloatArray
    name: str

    def __len__(self) -> int:
        return len(self.features)


class Key:
    """The rotations (N, d, d) of one message. It stays on the device: it is not printed and cannot be pickled."""

    __slots__ = ("message", "rotations", "single")

    def __init__(self, message: str, rotations: FloatArray, *, single: bool) -> None:
        self.message, self.rotations, self.single = message, rotations, single

    def __repr__(self) -> str:
        return f"Key(of message {self.message})"

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise UsageError("a key never leaves the device: it cannot be pickled or copied to another process.")


_AT_ONCE = 4096


def encode(encoder: nn.Module, x: FloatArray, randomness: Randomness, out: FloatArray | None = None) -> FloatArray:
    """The feature of each record, computed in an order drawn anew; into ``out`` (N, …), if it is given.

    The last bits of a feature depend on its place in the batch. In the records' own order they would tell which row
    of a message was the record; in a secret one they tell nothing.
    """
    order = np.argsort(randomness.uniform((len(x),)))
    if out is None:
        features = forward_in_batches(encoder, as_tensor(x[order])).numpy()
        return features[np.argsort(order)]
    for start in range(0, len(x), _AT_ONCE):
        some = order[start : start + _AT_ONCE]
        out[some] = forward_in_batches(encoder, as_tensor(x[some])).numpy()
    return out


class Device:
    """The encryption module g and the decryption module, on the side that knows the key.

    ``arrangement`` says which records share a message; with a pool decoys come from there, and a single record can be
    sent. ``answer`` is the shape of one row of the cloud's answer.
    """

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        schema: Schema,
        d: int,
        *,
        answer: tuple[int, ...],
        reflections: bool,
        arrangement: Arrangement,
    ) -> None:
        self._encoder, self._decoder = encoder, decoder
        self._schema, self.d, self._answer = schema, d, answer
        self._reflections, self._arrangement = reflections, arrangement

    def encrypt(self, x: npt.ArrayLike | Dataset) -> tuple[Message, Key]:
        """Eq. 2, x = exp(iθ)[a + bi], for R ∈ O(d): each record's feature and its decoys', turned by a fresh key.

        ``x`` is a batch (N, *shape), one record (*shape) or a data set, which also says where its records come from.
        Keys come from the operating system's secure source.
        """
        records, origin, single = self._records(x)
        randomness = Secure()
        with self._arrangement.of(records, origin, randomness) as seats:
            features = encode(self._encoder, seats.everyone, randomness)
            hidden, keys = hide(features, seats.rows, randomness, reflections=self._reflections)
        name = secrets.token_hex(16)
        return Message(hidden, name), Key(name, keys, single=single)

    def _records(self, x: npt.ArrayLike | Dataset) -> tuple[FloatArray, Origin, bool]:
        if isinstance(x, Dataset):
            check_records(x.x, self._schema, x.name)
            return x.x, x.origin, False
        records = np.asarray(x, dtype=np.float32)
        single = records.shape == self._schema.shape
        records = records[None] if single else records
        check_records(records, self._schema, "x")
        return records, Origin(records), single

    def decrypt(self, message: Message, key: Key) -> FloatArray:
        """Eq. 3: Rᵀ takes the answer back, and row 0 is read.

        Class scores (N, Σ classes) of the utility labels one after the other (``Schema.by_label``), or (Σ classes,) for
        a single record.
        """
        _check_message(message)
        if message.name != key.message:
            raise UsageError("this key belongs to another message: decrypt each answer with the key of its question.")
        count = len(key.rotations)
        check_features(message.features, self.d, self._answer, "an answer of the cloud")
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
        _check_message(message)
        check_features(message.features, self._d, self._shape, "a message to this cloud")
        answer = forward_in_batches(self._network, as_tensor(np.asarray(message.features, dtype=np.float32)))
        return Message(answer.numpy(), message.name)


def _check_message(message: Message) -> None:
    if not isinstance(message, Message):
        raise UsageError(f"expected a Message, as device.encrypt makes it, and got {type(message).__name__}.")


def check_features(features: FloatArray, d: int, shape: tuple[int, ...], what: str) -> None:
    """Raise ``DataError`` unless these are finite numbers of d components of ``shape`` a record."""
    if features.ndim < 3 or features.shape[1] != d:
        raise DataError(
            f"{what} has {d} components on axis 1, this one has shape {features.shape}: device and cloud must be "
            "fitted with one d."
        )
    if features.shape[2:] != shape:
        raise DataError(f"{what} has features of shape {shape}, this one of {features.shape[2:]}.")
    if len(features) == 0:
        raise DataError("the message holds no records.")
    finite = np.isfinite(features).reshape(len(features), -1).all(axis=1)
    if not finite.all():
        raise DataError(f"record {int(np.argmin(finite))} of the message holds NaN or infinite values.")
