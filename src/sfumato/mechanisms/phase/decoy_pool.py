"""What a device keeps: its secret, and which decoys of its pool it has given to whom."""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from sfumato.core.dataset import FloatArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.run_folder import read_json, write_json
from sfumato.mechanisms.phase.decoys import record_tags


class Pool:
    """Records of the owner's choice (private ones, a synthetic set) as decoys for single records.

    A record that comes again gets its decoys again; a decoy never serves two records. ``used`` keeps this across
    restarts and among the devices of one secret; it holds keyed hashes and belongs on the device.
    """

    def __init__(self, records: FloatArray, secret: bytes, used: Path | None = None) -> None:
        self._secret, self._file = secret, used
        self._lock = threading.Lock()
        tags = [str(tag) for tag in record_tags(records, secret)]
        self._records = dict(zip(tags, records, strict=True))  # copies fall together
        self._digest = hashlib.blake2b(" ".join(sorted(self._records)).encode(), key=secret, digest_size=16).hexdigest()
        self._given: dict[str, list[str]] = {}

    def beside(self, x: FloatArray, d: int) -> FloatArray:
        """The decoys (N, d − 1, *shape) of checked records."""
        tags = [str(tag) for tag in record_tags(x, self._secret)]
        with self._lock, self._stored():
            if any(len(decoys) != d - 1 for decoys in self._given.values()):
                raise UsageError(f"{self._file} was written for another d than {d}: use another secret.")
            self._give(list(dict.fromkeys(tags)), d - 1)
            return np.stack([np.stack([self._records[decoy] for decoy in self._given[tag]]) for tag in tags])

    def _give(self, tags: list[str], each: int) -> None:
        fresh = [tag for tag in tags if tag not in self._given]
        taken = {decoy for decoys in self._given.values() for decoy in decoys} | set(self._given) | set(tags)
        free = [tag for tag in self._records if tag not in taken]
        if len(free) < len(fresh) * each:
            raise UsageError(
                f"the pool of decoys is used up: {len(fresh)} new record(s) need {len(fresh) * each}, and {len(free)} "
                f"of {len(self._records)} are free. A decoy that serves two records gives both away: enlarge it."
            )
        for tag in fresh:
            self._given[tag] = [free.pop(_below(len(free))) for _ in range(each)]

    @contextmanager
    def _stored(self) -> Iterator[None]:
        """The assignments as they stand in the file, and back into it, with no other device in between."""
        if self._file is None:
            yield
            return
        with self._file.with_name(self._file.name + ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self._file.exists():
                stored = read_json(self._file)
                if stored.get("pool") != self._digest:
                    raise DataError(f"{self._file} speaks of another pool: restore that one, or use another secret.")
                self._given = stored["given"]
            before = len(self._given)
            yield
            if len(self._given) != before:
                write_json(self._file, {"pool": self._digest, "given": self._given})
                self._file.chmod(0o600)


def _below(n: int) -> int:
    """A whole number below n from the operating system."""
    return int.from_bytes(os.urandom(16), "little") % n
