"""Where records come from, in terms that scaling, a refit, the file format and unused columns do not change.

Splits, companies and keyed noise hang on these hashes, so that one record more or less changes nothing for the others.
They are not keyed: whoever stores or sends something derived from them keys it first.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint8]
"""(N, 16): one BLAKE2b hash a record."""

HASH_BYTES = 16
_AT_ONCE = 2**23
"""Bytes of records that are copied at a time."""


def hash_rows(values: npt.NDArray[Any]) -> Hashes:
    """Hash the bytes of every row of (N, …); −0 counts as 0."""
    found = bytearray()
    count = max(1, _AT_ONCE // max(1, values[:1].nbytes))
    for start in range(0, len(values), count):
        some = values[start : start + count]
        rows = np.ascontiguousarray(some + np.float32(0.0) if some.dtype.kind == "f" else some).reshape(len(some), -1)
        found += b"".join(hashlib.blake2b(row.tobytes(), digest_size=HASH_BYTES).digest() for row in rows)
    return np.frombuffer(bytes(found), dtype=np.uint8).reshape(len(values), HASH_BYTES)


def by_frequency(x: npt.NDArray[Any]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Where each different record of ``x`` stands first, the most frequent one first, and how often each occurs."""
    _, first, counts = np.unique(hash_rows(x), axis=0, return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))
    return first[order], counts[order]


class Origin:
    """What tells the records of a data set apart, whatever became of them since.

    contents  (N, 16), a hash of each record's raw values: copies of a record share it
    nonces    (N, 16), a hash of content, subject (if subjects are named) and how many records with both came before:
              no two records of a file share it, and a record keeps it in every file that holds it
    raw       whether contents were taken before a schema scaled the records, so that a refit leaves them as they are
    named     whether nonces tell subjects apart
    """

    def __init__(
        self,
        x: npt.NDArray[Any],
        *,
        contents: Hashes | None = None,
        subjects: npt.NDArray[Any] | None = None,
        earlier: Counter[bytes] | None = None,
    ) -> None:
        self._x, self._contents, self._subjects, self._earlier = x, contents, subjects, earlier
        self.raw, self.named = contents is not None, subjects is not None

    @cached_property
    def contents(self) -> Hashes:
        return hash_rows(self._x) if self._contents is None else self._contents

    @cached_property
    def nonces(self) -> Hashes:
        seen = Counter() if self._earlier is None else self._earlier
        subjects = [""] * len(self._x) if self._subjects is None else self._subjects.tolist()
        found = []
        for content, subject in zip(self.contents, subjects, strict=True):
            whose = content.tobytes() + str(subject).encode()
            key = hashlib.blake2b(whose, digest_size=HASH_BYTES).digest()
            copy = seen[key].to_bytes(8, "little")
            found.append(hashlib.blake2b(whose, key=copy, digest_size=HASH_BYTES).digest())
            seen[key] += 1
        return np.frombuffer(b"".join(found), dtype=np.uint8).reshape(len(found), HASH_BYTES)
