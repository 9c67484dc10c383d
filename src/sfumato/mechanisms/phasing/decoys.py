"""Who stands beside whom in a message: decoys that nobody can tell from the record.

The records of one batch are each other's decoys. A record tag, a hash under the device's secret, puts them in an
order that only the device knows; d neighbours in that order make a group, and every message of the group holds the
same d rows. So no decoy ever stands beside two records that do not stand beside it: decoys that served many records
would be the common line of the messages' row spans, and be found by linear algebra alone.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.randomness import Randomness
from sfumato.core.runs import read_json, write_json

Tags = npt.NDArray[np.uint64]
SECRET_BYTES = 32


def record_tags(x: FloatArray, secret: bytes) -> Tags:
    """A keyed hash of every record (BLAKE2b): the same record gets the same tag on the same device only."""
    tags = [hashlib.blake2b(record.tobytes(), key=secret, digest_size=8).digest() for record in np.ascontiguousarray(x)]
    return np.frombuffer(b"".join(tags), dtype=np.uint64)


def random_tags(count: int, randomness: Randomness) -> Tags:
    """Fresh tags: other decoys on every release."""
    return np.asarray(randomness.uniform((count,)) * 2.0**53, dtype=np.uint64)


def grouped_rows(tags: Tags, d: int) -> IntArray:
    """(N, d) positions: each record, then its decoys, all from its group of d neighbours in the order of the tags.

    What is left over makes the last group larger, of m = d … 2d − 1 records on a circle: a message holds d
    neighbours on it, and the record is the k-th of them in every message, k uniform and secret. So a row is the
    record with probability 1/d there as well, whatever the overlap of the messages shows.
    """
    order = np.argsort(tags, kind="stable")
    count = len(order)
    rows = np.empty((count, d), dtype=np.int64)
    whole = max(0, count // d - 1) * d
    groups = order[:whole].reshape(-1, d)
    for place in range(d):
        rows[groups[:, place]] = np.roll(groups, -place, axis=1)
    circle = order[whole:]
    offset = int(tags[circle].sum(dtype=np.uint64) % np.uint64(d))
    for place, record in enumerate(circle):
        beside = circle[(place - offset + np.arange(d)) % len(circle)]
        rows[record] = np.concatenate([[record], beside[beside != record]])
    return rows


def neighbour_rows(tags: Tags, d: int) -> IntArray:
    """(N, d) positions as published (§3.2): each record, then d − 1 randomly chosen others, without any grouping."""
    order = np.argsort(tags, kind="stable")
    rows = np.empty((len(order), d), dtype=np.int64)
    rows[order] = np.stack([np.roll(order, -step) for step in range(d)], axis=1)
    return rows


class Pool:
    """Decoys for single records: features of the owner's choice (private records, a synthetic set).

    A record that comes again gets its decoys again; a decoy never serves two records. ``used`` keeps who has been
    used across restarts; it holds keyed hashes and positions and belongs on the device.
    """

    def __init__(self, features: FloatArray, secret: bytes, used: Path | None = None) -> None:
        self._features, self._secret, self._file = features, secret, used
        self._given: dict[str, list[int]] = {}
        if used is not None and used.exists():
            self._given = _checked(read_json(used), len(features), used)

    def beside(self, x: FloatArray, features: FloatArray, d: int) -> tuple[FloatArray, IntArray]:
        """The records' features, then their decoys', and rows (N, d) into them: each record, then its decoys."""
        fresh = [tag for tag in dict.fromkeys(map(str, record_tags(x, self._secret))) if tag not in self._given]
        taken = {row for rows in self._given.values() for row in rows}
        free = [row for row in range(len(self._features)) if row not in taken]
        if len(free) < len(fresh) * (d - 1):
            raise UsageError(
                f"the pool of decoys is used up: {len(fresh)} new records need {len(fresh) * (d - 1)} decoys and "
                f"{len(free)} of {len(self._features)} are free. A decoy that serves two records gives both away: "
                "give the device a larger pool."
            )
        for tag in fresh:
            self._given[tag] = [free.pop(_below(len(free))) for _ in range(d - 1)]
        if fresh and self._file is not None:
            write_json(self._file, self._given)
        rows = [self._given[str(tag)] for tag in record_tags(x, self._secret)]
        if any(len(row) != d - 1 for row in rows):
            raise UsageError(f"{self._file} was written for another d than {d}.")
        decoys = self._features[np.array(rows, dtype=np.int64).reshape(-1)]
        places = len(x) + np.arange(len(decoys)).reshape(len(x), d - 1)
        return np.concatenate([features, decoys]), np.column_stack([np.arange(len(x)), places])


def _below(n: int) -> int:
    """A whole number below n from the operating system."""
    return int.from_bytes(os.urandom(16), "little") % n


def _checked(stored: object, size: int, file: Path) -> dict[str, list[int]]:
    if isinstance(stored, dict) and all(
        isinstance(rows, list) and all(isinstance(row, int) and 0 <= row < size for row in rows)
        for rows in stored.values()
    ):
        return stored
    raise DataError(f"{file} does not speak of this pool of {size} decoys: restore it, or start with a new pool.")


def secret_file(path: Path) -> bytes:
    """The device's secret in ``path``, made on first use and readable by its owner only."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as handle:
            handle.write(os.urandom(SECRET_BYTES))
    except FileExistsError:
        pass
    except OSError as error:
        raise DataError(f"cannot write the device's secret to {path} ({error.strerror}).") from None
    secret = path.read_bytes()
    if len(secret) != SECRET_BYTES:
        raise DataError(f"{path} holds {len(secret)} bytes; a device's secret has {SECRET_BYTES}.")
    return secret
