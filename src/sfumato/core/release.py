"""What leaves the owner."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import DataError
from sfumato.core.guarantee import Guarantee, empirical


@dataclass(frozen=True)
class Release:
    """The payload ``(N, …)`` that leaves, labels that others may use, and what is promised about it.

    There is no field for raw records, private columns, subject ids or keys; ``Mechanism.release`` also checks that
    the payload is not the record itself.
    """

    mechanism: str
    payload: FloatArray
    guarantee: Guarantee
    utility: Mapping[str, IntArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not np.isfinite(self.payload).all():
            row = int(np.argwhere(~np.isfinite(self.payload.reshape(len(self.payload), -1)).all(axis=1))[0, 0])
            raise DataError(f"{self.mechanism}: the release of record {row} holds NaN or infinite values.")
        for name, values in self.utility.items():
            if len(values) != len(self.payload):
                raise DataError(f"{self.mechanism}: label '{name}' has {len(values)} values for {len(self)} records.")
        self.payload.setflags(write=False)

    def __len__(self) -> int:
        return len(self.payload)

    @property
    def digest(self) -> str:
        """SHA-256 of shape and payload: two releases with one digest are the same release."""
        hasher = hashlib.sha256(repr((self.mechanism, self.payload.shape)).encode())
        hasher.update(np.ascontiguousarray(self.payload).tobytes())
        return hasher.hexdigest()


def raw_release(data: Dataset) -> Release:
    """The records themselves, as every control attacks them."""
    return Release("raw records", data.x, empirical("No defence."), data.utility)
