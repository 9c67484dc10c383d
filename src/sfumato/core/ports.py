"""What goes into a network that is shipped, and what comes out: said once for mechanisms, bundles and their clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Source = Literal["record", "private", "drawn", "company", "payload", "answer", "kept", "class"]
Law = Literal["normal", "laplace", "uniform", "orthogonal", "rotation", "bits", "ones"]
DType = Literal["float32", "int64"]


@dataclass(frozen=True)
class KeyedBy:
    """How a drawn value follows from the device's secret, so that the same record has the same value again.

    purposes  what the secret is narrowed to, one keyed hash after the other
    by        ``record``: another value for each record; ``device``: one for all
    """

    purposes: tuple[str, ...]
    by: Literal["record", "device"]


@dataclass(frozen=True)
class Port:
    """One input or output of a program.

    ``shape`` begins with −1, the number of things along ``axis``: ports with one axis have equally many. ``source``
    says where an input comes from, ``law`` how it is drawn. An output with a ``grid`` has multiples of it alone.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    axis: str = "batch"
    source: Source | None = None
    law: Law | None = None
    keyed: KeyedBy | None = None
    range: tuple[float, float] | None = None
    grid: float | None = None

    @property
    def row(self) -> tuple[int, ...]:
        """The shape of one thing."""
        return self.shape[1:]


@dataclass(frozen=True)
class CompanyRule:
    """Who may stand in a message beside a record (``phase``); the rules are those of docs/phase.md.

    rows         d, the rows of a message
    reflections  keys from O(d) and not SO(d); rows are shuffled before they are turned
    grouped      groups of d records that stay together; else any others of the batch, as published
    kept         whether company follows from the device's secret and stays for ever
    records      what the records are, as the device's store of companies remembers it
    """

    rows: int
    reflections: bool
    grouped: bool
    kept: bool
    records: str
