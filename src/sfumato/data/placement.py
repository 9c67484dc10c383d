"""Where a record goes, from the record and a seed alone: one record more or less moves no other.

Shares are kept on average, not exactly: of N records that are placed each by itself, a share s gets s·N of them, with a
standard deviation of √(N·s·(1 − s)).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import Dataset, IntArray
from sfumato.core.origin import HASH_BYTES, Hashes
from sfumato.data.column_roles import Roles
from sfumato.data.encoding.records import ids_of
from sfumato.data.encoding.row_hashes import identifying_columns, row_hashes
from sfumato.data.readers.locate import LocatedSource
from sfumato.data.readers.source import Source

_ROWS = 16_384
_RECORDS = 256
"""Pictures, recordings and lists at a time."""


def fractions(keys: Hashes, seed: int, what: str) -> npt.NDArray[np.float64]:
    """Return a number in [0, 1) for each key, (N, 16) → (N,): its BLAKE2b hash, keyed by the seed and the purpose."""
    secret = hashlib.blake2b(repr((seed, what)).encode(), digest_size=32).digest()
    words = bytearray()
    for start in range(0, len(keys), _ROWS):
        some = keys[start : start + _ROWS]
        words += b"".join(hashlib.blake2b(key.tobytes(), key=secret, digest_size=8).digest() for key in some)
    return np.asarray((np.frombuffer(bytes(words), dtype="<u8") >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def placed(keys: Hashes, shares: Sequence[float], seed: int, what: str) -> IntArray:
    """Return the share that each key falls into, (N, 16) → (N,): where its fraction meets the cumulative shares."""
    bounds = np.cumsum(shares)[:-1] / np.sum(shares)
    return np.searchsorted(bounds, fractions(keys, seed, what), side="right").astype(np.int64)


def subjects_in(data: Dataset) -> Hashes:
    """Return what the place of each record hangs on, (N, 16): its subject if subjects are named, else its content."""
    return _hashed(data.ids) if data.named else data.origin.contents


def subjects_of(source: Source, roles: Roles) -> Hashes:
    """Return what the place of each row hangs on, (N, 16): its subject if one is named, else the row itself."""
    if roles.id is None:
        return rows_of(source, roles)
    batches = source.batches([roles.id], _ROWS)
    return _joined([_hashed(ids_of(source, batch, first, roles.id)) for first, batch in batches])


def rows_of(source: Source, roles: Roles) -> Hashes:
    """Return a hash of each row, (N, 16), which does not depend on the labels that are asked for."""
    columns = identifying_columns(source, roles)
    batches = source.batches(columns, _RECORDS if len(columns) == 1 else _ROWS)
    return _joined([row_hashes(source, batch, first, roles) for first, batch in batches])


def public_size(opened: LocatedSource, rows: int) -> int:
    """Return the number of rows as far as it is public: rounded up to a power of two, or that of the named set."""
    rounded = 1 << max(rows - 1, 0).bit_length()
    known = 0 if opened.entry is None else sum(opened.entry.rows)
    return min(rounded, known) if known else rounded


def within_limit(
    opened: LocatedSource, parts: Sequence[tuple[Source, Roles]], limit: int, seed: int
) -> list[npt.NDArray[np.intp]]:
    """Return the rows of each part that ``limit`` keeps: those whose fraction is below limit / ``public_size``.

    The exact number of rows must not set the threshold: with it, one row more would drop others.
    """
    keys = [rows_of(source, roles) for source, roles in parts]
    threshold = limit / public_size(opened, sum(len(part) for part in keys))
    return [np.flatnonzero(fractions(part, seed, "limit") < threshold) for part in keys]


def _hashed(ids: npt.NDArray[np.str_]) -> Hashes:
    names, places = np.unique(ids, return_inverse=True)
    hashes = b"".join(hashlib.blake2b(str(name).encode(), digest_size=HASH_BYTES).digest() for name in names)
    return np.frombuffer(hashes, dtype=np.uint8).reshape(-1, HASH_BYTES)[places.reshape(-1)]


def _joined(pieces: Sequence[Hashes]) -> Hashes:
    return np.concatenate(pieces) if pieces else np.zeros((0, HASH_BYTES), dtype=np.uint8)
