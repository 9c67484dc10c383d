"""Who stands beside whom in a message: decoys that nobody can tell from the record.

The records of one release are each other's decoys. A record's tag, a hash under the device's secret, decides its group
of d; every message of the group holds the same d rows, and each of the d records has one. So no decoy ever stands
beside two records that do not stand beside it: decoys that served many records would be the common line of the
messages' row spans, and be found by linear algebra alone. Copies of a record stand in different groups: in one they
would be read off the message, and if they shared their decoys, counting messages would tell them from these.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import IntArray
from sfumato.core.errors import UsageError
from sfumato.core.origin import Hashes

Tags = npt.NDArray[np.uint64]


def record_tags(hashes: Hashes, secret: bytes) -> Tags:
    """A keyed hash of every record's hash (BLAKE2b): the same for the same record, on the same device only."""
    tags = [hashlib.blake2b(row.tobytes(), key=secret, digest_size=8).digest() for row in hashes]
    return np.frombuffer(b"".join(tags), dtype=np.uint64)


def dealt_groups(tags: Tags, likeness: Hashes, d: int) -> IntArray:
    """(N,): the number of each record's group; groups have d … 2d − 1 records, and copies share none if they can.

    Copies come one after the other, in an order that only the device knows, and the ⌊N/d⌋ groups take turns.
    """
    copies = copies_of(likeness)
    first = np.full(len(tags), np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(first, copies, tags)  # the place of a record's copies among the others
    groups = np.empty(len(tags), dtype=np.int64)
    groups[np.lexsort((tags, first[copies]))] = np.arange(len(tags)) % max(1, len(tags) // d)
    return groups


def check_crowd(likeness: Hashes, d: int, what: str = "record(s)") -> None:
    """Raise ``UsageError`` if records cannot hide one another: too few, or too many copies of one."""
    count = len(likeness)
    if count < d:
        raise UsageError(
            f"{count} {what} cannot hide among themselves at d = {d}: send at least {d} together, or use a device "
            "with a pool of decoys."
        )
    most = int(np.bincount(copies_of(likeness)).max())
    if most > count // d:
        raise UsageError(
            f"{most} of {count} {what} are copies of one another, and at d = {d} at most {count // d} may be: more "
            "could not stand in different groups. Add other records, remove copies, or use a smaller d."
        )


def message_rows(tags: Tags, groups: IntArray, d: int) -> IntArray:
    """(N, d) positions: each record, then its decoys, for whole groups.

    A group of m > d records stands on a circle, in the order of the tags: a message holds d neighbours on it, and the
    record is the k-th of them in every message, k uniform and secret. So a row is the record with probability 1/d
    there as well, whatever the overlap of the messages shows.
    """
    order = np.lexsort((tags, groups))
    _, start, size = np.unique(groups[order], return_index=True, return_counts=True)
    offset = (np.add.reduceat(tags[order], start) % np.uint64(d)).astype(np.int64)
    start, offset, size = (np.repeat(each, size) for each in (start, offset, size))
    place = np.arange(len(tags)) - start
    rows = np.empty((len(tags), d), dtype=np.int64)
    for step in range(d):  # step 0 is the record itself
        beside = (place - offset + (offset + step) % d) % size
        rows[order, step] = order[start + beside]
    return rows


def neighbour_rows(tags: Tags, likeness: Hashes, d: int) -> IntArray:
    """(N, d) positions as published (§3.2): each record, then d − 1 randomly chosen others, without any grouping."""
    _, first, copies = np.unique(copies_of(likeness), return_index=True, return_inverse=True)
    if len(first) < d:
        check_crowd(likeness[first], d, "different record(s)")
    shuffled = np.argsort(tags[first])
    place = np.argsort(shuffled)
    beside = [first[shuffled[(place + step) % len(first)]][copies] for step in range(1, d)]
    return np.stack([np.arange(len(tags)), *beside], axis=1).astype(np.int64)


def copies_of(likeness: Hashes) -> IntArray:
    """(N,): a number for each record, the same for its copies."""
    rows = np.ascontiguousarray(likeness).view(f"V{likeness.shape[1]}").reshape(-1)
    return np.unique(rows.view(f"S{likeness.shape[1]}"), return_inverse=True)[1].astype(np.int64)
