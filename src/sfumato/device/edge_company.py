"""Who stands in a message beside a record, by the rules of ``phase``, on a device."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.origin import Origin
from sfumato.core.ports import CompanyRule
from sfumato.core.randomness import Randomness
from sfumato.core.schema import Kind, Schema
from sfumato.deploy.manifest import Preprocessing
from sfumato.mechanisms.device_secret import SECRET_BYTES
from sfumato.mechanisms.phase.arrangement import Arrangement
from sfumato.mechanisms.phase.companies import Companies, companies_of


class EdgeCompany:
    """The arrangement of one device: kept beside its secret's file, or as long as the object lives without one."""

    def __init__(
        self,
        rule: CompanyRule,
        records: Preprocessing,
        secret: bytes | None,
        file: Path | None,
        pool: FloatArray | None,
    ) -> None:
        kind: Kind = "table" if records.kind == "vectors" else records.kind
        schema = Schema(kind, records.shape)
        decoys = None if pool is None else Dataset(pool, schema, name="pool")
        kept: Companies | None = None
        if rule.kept or pool is not None:
            kept = companies_of(os.urandom(SECRET_BYTES) if secret is None else secret, file)
        self._arrangement = Arrangement(rule.rows, schema, kept, rule.grouped, decoys, rule.records)

    @contextmanager
    def seats(self, x: FloatArray, randomness: Randomness) -> Iterator[tuple[FloatArray, IntArray]]:
        """Everybody who stands in a message (M, …) and who stands in each (N, d), the record first; what must be
        remembered is kept when the block ends well."""
        with self._arrangement.of(x, Origin(x), randomness) as found:
            yield found.everyone, found.rows
