"""From records to the rows of their messages: company that stays, company drawn afresh, and a pool of decoys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import UsageError
from sfumato.core.origin import Hashes, Origin, hash_rows
from sfumato.core.randomness import Randomness, Secure
from sfumato.core.schema import Schema
from sfumato.mechanisms.device_secret import drawn_secret
from sfumato.mechanisms.phase.companies import Candidates, Companies, CompanyTerms, terms_of
from sfumato.mechanisms.phase.decoys import neighbour_rows

_AT_ONCE = 4096


class Seats(NamedTuple):
    """Everybody who stands in a message (M, …); who stands in each (N, d), the record first: among everybody, and
    among the records and then the whole pool."""

    everyone: FloatArray
    rows: IntArray
    positions: IntArray


@dataclass(frozen=True)
class Arrangement:
    """Who stands in each message of d rows.

    companies  who stands with whom under the device's secret; None: drawn afresh for every release
    grouped    in groups of d, kept for ever; else as published, beside any others of the release
    pool       decoys of the owner's choice, to send single records
    records    what the store of companies calls these records, where it is known without asking the schema
    """

    d: int
    schema: Schema
    companies: Companies | None
    grouped: bool = True
    pool: Dataset | None = None
    records: str = ""

    @contextmanager
    def of(self, x: FloatArray, origin: Origin, randomness: Randomness) -> Iterator[Seats]:
        """Who stands in each message; what must be remembered of it is kept when the block ends well."""
        crowd = Candidates(origin.nonces, _likeness(x, origin))
        companies = self.companies or Companies(drawn_secret(randomness), strict=isinstance(randomness, Secure))
        if not self.grouped and self.pool is None:
            companies.check_strangers(crowd)
            rows = neighbour_rows(companies.tags(origin.contents), crowd.likeness, self.d)
            yield Seats(x, rows, rows)
            return
        terms = self._terms(origin)
        if self.pool is None:
            with companies.arranged(terms, crowd, randomness) as rows:
                yield Seats(x, rows, rows)
            return
        if self._terms(self.pool.origin) != terms:
            raise UsageError(
                "give records and pool in one form: both as arrays, or both as data sets with or without ids."
            )
        pool = Candidates(self.pool.origin.nonces, _likeness(self.pool.x, self.pool.origin))
        with companies.arranged(terms, crowd, randomness, pool) as rows:
            needed, places = np.unique(np.concatenate([np.arange(len(x)), rows.reshape(-1)]), return_inverse=True)
            everyone = np.concatenate([x, self.pool.x[needed[len(x) :] - len(x)]])
            yield Seats(everyone, places[len(x) :].reshape(rows.shape), rows)

    def _terms(self, origin: Origin) -> CompanyTerms:
        if self.records:
            return CompanyTerms(self.d, self.records, origin.named)
        return terms_of(self.d, self.schema, origin)


def _likeness(x: FloatArray, origin: Origin) -> Hashes:
    """What records look like to a network, (N, 16); hashed a few at a time, because they may lie on disk."""
    if not origin.raw:
        return origin.contents
    return np.concatenate([hash_rows(x[start : start + _AT_ONCE]) for start in range(0, len(x), _AT_ONCE)])
