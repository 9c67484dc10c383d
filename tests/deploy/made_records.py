"""Small made-up records of every kind, whose labels can be read from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.core.dataset import Dataset
from sfumato.core.schema import AudioFrame, Column, Schema

SHAPES = {"image": (1, 16, 16), "signal": (3, 32), "audio": (1, 16, 16), "table": (7,), "vectors": (12,)}
COLUMNS = (
    Column("age", "numeric", low=17.0, high=90.0, integer=True),
    Column("hours", "numeric", low=0.0, high=99.0),
    Column("work", "categorical", ("public", "private", "none")),
    Column("gain", "numeric", low=0.0, high=5.0, nullable=True),
)


def made_records(kind: str, records: int = 240) -> Dataset:
    """The first half of a record tells ``what``, the second ``who``."""
    chance = np.random.default_rng(4)
    shape = SHAPES[kind]
    what, who = chance.integers(0, 3, records), chance.integers(0, 2, records)
    x = chance.random((records, *shape), dtype=np.float32)
    flat = x.reshape(records, -1)
    middle = flat.shape[1] // 2
    flat[:, :middle] = 0.2 * flat[:, :middle] + 0.8 * (what / 3)[:, None]
    flat[:, middle:] = 0.2 * flat[:, middle:] + 0.8 * who[:, None]
    more: dict[str, Any] = {"ranges": ((0.0, 1.0),)}
    if kind == "table":
        x[:, 0], x[:, 1] = 0.2 * x[:, 0] + 0.8 * (what / 3), 0.2 * x[:, 1] + 0.8 * who
        x[:, 2:5] = np.eye(3)[chance.integers(0, 3, records)]
        x[:, 6] = 0.0
        more = {"columns": COLUMNS, "x_columns": tuple(column.name for column in COLUMNS)}
    elif kind == "vectors":
        columns = tuple(Column(f"v[{place}]", "numeric", low=-1.0, high=1.0) for place in range(12))
        more = {"columns": columns, "x_columns": ("v",)}
    elif kind == "signal":
        more = {"ranges": ((-2.0, 2.0),) * 3}
    elif kind == "audio":
        more = {"ranges": ((-80.0, 0.0),), "audio": AudioFrame(4000, 0.5, 16, 16)}
    schema = Schema(
        "table" if kind == "vectors" else kind,  # type: ignore[arg-type]
        shape,
        utility={"what": ("a", "b", "c")},
        private={"who": ("m", "f")},
        **more,
    )
    return Dataset(x, schema, utility={"what": what}, private={"who": who}, name="made up")
