"""What leaves the owner."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import DataError
from sfumato.core.guarantee import Guarantee, empirical
from sfumato.core.notebook import facts_table


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

    def _repr_html_(self) -> str:
        promised = self.guarantee
        return facts_table(
            f"release by {self.mechanism}",
            {
                "payload": f"{len(self)} × {' × '.join(map(str, self.payload.shape[1:]))}",
                "labels that leave": ", ".join(self.utility),
                "guarantee": f"{promised.kind}: {promised.statement}",
                "warnings": " ".join(promised.warnings),
                "digest": self.digest,
            },
        )

    @property
    def digest(self) -> str:
        """SHA-256 of shape and payload: two releases with one digest are the same release."""
        hasher = hashlib.sha256(repr((self.mechanism, self.payload.shape)).encode())
        hasher.update(np.ascontiguousarray(self.payload).tobytes())
        return hasher.hexdigest()


def row_digests(payload: FloatArray) -> bytes:
    """SHA-256 of each row, one after the other. A written release's digest is the SHA-256 over those of all its rows,
    so that parts made by several workers have the digest of the whole."""
    return b"".join(hashlib.sha256(row.tobytes()).digest() for row in np.ascontiguousarray(payload))


def unchanged_row(payload: FloatArray, x: FloatArray) -> int | None:
    """The first row of a payload in which a record stands bit for bit as it was, in whatever shape; None if none does.

    A row of as many numbers as a record is compared with every record in ``x``, a longer one with its own record, at
    every place in the row. A record of one value only, such as a blank picture, is passed over: it is nobody's.
    """
    rows, records = payload.reshape(len(payload), -1), x.reshape(len(x), -1)
    telling = records.min(axis=1) < records.max(axis=1)
    if rows.shape[1] == records.shape[1]:
        known = {hash(record.tobytes()) for record in records[telling]}
        return next((row for row, sent in enumerate(rows) if hash(sent.tobytes()) in known), None)
    if rows.shape[1] > records.shape[1] and len(rows) == len(records):
        return next(
            (int(row) for row in np.flatnonzero(telling) if records[row].tobytes() in rows[row].tobytes()), None
        )
    return None


def raw_release(data: Dataset) -> Release:
    """The records themselves, as every control attacks them."""
    return Release("raw records", data.x, empirical("No defence."), data.utility)
