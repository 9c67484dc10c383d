"""Who stands beside whom in a message: decoys that nobody can tell from the record.

The records of one batch are each other's decoys. A record's tag, a hash under the device's secret, puts them in an
order that only the device knows; d neighbours in that order make a group, and every message of the group holds the
same d rows. So no decoy ever stands beside two records that do not stand beside it: decoys that served many records
would be the common line of the messages' row spans, and be found by linear algebra alone. Equal records share their
company: a record that was its own decoy would be read off its message.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.errors import UsageError
from sfumato.core.randomness import Randomness

Tags = npt.NDArray[np.uint64]


def record_tags(x: FloatArray, secret: bytes) -> Tags:
    """A keyed hash of every record (BLAKE2b): equal records have equal tags, on the same device only."""
    records = np.ascontiguousarray(x + np.float32(0.0))  # −0 becomes 0
    tags = [hashlib.blake2b(record.tobytes(), key=secret, digest_size=8).digest() for record in records]
    return np.frombuffer(b"".join(tags), dtype=np.uint64)


def random_tags(x: FloatArray, randomness: Randomness) -> Tags:
    """Fresh tags, equal for equal records: other decoys on every release."""
    return record_tags(x, randomness.uniform((4,)).tobytes())


def grouped_rows(tags: Tags, d: int) -> IntArray:
    """(N, d) positions: each record, then its decoys, all from its group of d neighbours in the order of the tags.

    What is left over makes the last group larger, of m = d … 2d − 1 records on a circle: a message holds d
    neighbours on it, and the record is the k-th of them in every message, k uniform and secret. So a row is the
    record with probability 1/d there as well, whatever the overlap of the messages shows. A copy of a record has the
    decoys of the first one.
    """
    distinct, first, copies = np.unique(tags, return_index=True, return_inverse=True)  # in the order of the tags
    check_distinct(len(distinct), d)
    rows = np.empty((len(distinct), d), dtype=np.int64)  # positions among the distinct ones
    whole = (len(distinct) // d - 1) * d
    groups = np.arange(whole).reshape(-1, d)
    for place in range(d):
        rows[groups[:, place]] = np.roll(groups, -place, axis=1)
    circle = np.arange(whole, len(distinct))
    offset = int(distinct[circle].sum(dtype=np.uint64) % np.uint64(d))
    for place, record in enumerate(circle):
        beside = circle[(place - offset + np.arange(d)) % len(circle)]
        rows[record] = np.concatenate([[record], beside[beside != record]])
    return _with_copies(first[rows][copies])


def neighbour_rows(tags: Tags, d: int) -> IntArray:
    """(N, d) positions as published (§3.2): each record, then d − 1 randomly chosen others, without any grouping."""
    distinct, first, copies = np.unique(tags, return_index=True, return_inverse=True)
    check_distinct(len(distinct), d)
    rows = np.stack([np.roll(first, -step) for step in range(d)], axis=1)
    return _with_copies(rows[copies])


def _with_copies(rows: IntArray) -> IntArray:
    """Rows that begin with the record itself, not with the first of its copies."""
    return np.column_stack([np.arange(len(rows)), rows[:, 1:]]).astype(np.int64)


def check_distinct(count: int, d: int) -> None:
    """Raise ``UsageError`` if so few different records cannot hide one another."""
    if count < d:
        raise UsageError(
            f"{count} different record(s) cannot hide among themselves at d = {d}: send at least {d} together, or use "
            "a device with a pool of decoys."
        )
