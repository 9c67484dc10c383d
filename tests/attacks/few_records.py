"""A table with few different records, and hardened ``ars`` with noise by content: what counting attacks are for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sfumato.core.dataset import Dataset, FloatArray, IntArray, Splits
from sfumato.core.origin import Origin
from sfumato.core.randomness import Randomness
from sfumato.core.schema import Column, Schema
from sfumato.mechanisms.ars.mechanism import ARS

COLUMNS = (
    Column("place", "categorical", ("rome", "oslo", "bern", "kyiv")),
    Column("work", "categorical", ("cook", "clerk", "smith")),
)
KINDS = 12


def people(rows: int, seed: int, name: str) -> Dataset:
    """Twelve kinds of record, each half as frequent again as the next."""
    rng = np.random.default_rng(seed)
    shares = 1.5 ** -np.arange(KINDS)
    kind = np.random.default_rng(0).permutation(KINDS)[rng.choice(KINDS, rows, p=shares / shares.sum())]
    x = np.concatenate([np.eye(4)[kind % 4], np.eye(3)[kind // 4]], axis=1).astype(np.float32)
    rich = (rng.random(rows) < 0.2 + 0.6 * (kind % 4 < 2)).astype(np.int64)
    old = (rng.random(rows) < 0.2 + 0.6 * (kind // 4 < 1)).astype(np.int64)
    schema = Schema("table", (7,), utility={"rich": ("n", "y")}, private={"old": ("n", "y")}, columns=COLUMNS)
    return Dataset(x, schema, utility={"rich": rich}, private={"old": old}, name=name)


def few_records(*, named: bool = False) -> Splits:
    parts = (people(600, 1, "owner"), people(900, 2, "attacker"), people(900, 3, "victim"))
    return Splits(*(replace(part, named=named) for part in parts))


class ByContent(ARS):
    """The noise as it was: a function of the record's content."""

    def _release_from(
        self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness, origin: Origin
    ) -> FloatArray:
        as_it_was = Origin(x)
        as_it_was.__dict__["nonces"] = origin.contents
        return super()._release_from(x, private, randomness, as_it_was)
