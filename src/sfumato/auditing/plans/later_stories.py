"""What a device may send after the victims' release, for attacks that compare the two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Opened
from sfumato.core.origin import hash_rows

_WIDER = np.float32(0.9)
"""How a refit on more rows, with wider ranges, scales what it scaled to 1 before."""


class Visits(Protocol):
    """What one device makes of batches, one after the other (``capabilities.Rotates.visits``)."""

    def __call__(self, batches: list[Dataset], *, pool: Dataset | None = None, seed: int) -> tuple[Opened, ...]: ...


@dataclass(frozen=True)
class Told:
    """One story.

    victims  who were sent first
    first    their release
    behind   (M, *shape), the records of which ``first.rows`` speaks
    by_now   the same as they are encoded later
    later    what the device sent then: the victims' messages in their order, or all of them
    """

    victims: Dataset
    first: Opened
    behind: FloatArray
    by_now: FloatArray
    later: FloatArray


def grown(visits: Visits, some: Dataset, others: Dataset, d: int, seed: int) -> Told | None:
    """The victims again, in a file that has grown by a quarter."""
    more = others.take(slice(0, max(2 * d, len(some) // 4)))
    first, second = visits([some, some.joined(more)], seed=seed)
    return Told(some, first, some.x, some.x, second.payload[: len(some)])


def rescaled(visits: Visits, some: Dataset, others: Dataset, d: int, seed: int) -> Told | None:  # noqa: ARG001
    """The victims again, scaled as a refit on more rows scales them; where they come from has not changed."""
    known = replace(some, contents=some.origin.contents)
    wider = replace(known, x=some.x * _WIDER)
    first, second = visits([known, wider], seed=seed)
    return Told(some, first, some.x, wider.x, second.payload)


def pool(visits: Visits, some: Dataset, others: Dataset, d: int, seed: int) -> Told | None:
    """Each victim alone with decoys from a pool, and then these decoys themselves, with the victims again."""
    decoys = _different(others, some.take(slice(0, 0)))
    victims = _different(some, decoys).take(slice(0, len(decoys) // (2 * (d - 1))))
    if len(victims) == 0:
        return None
    (first,) = visits([victims], pool=decoys, seed=seed)
    used = np.unique(first.rows[:, 1:]) - len(victims)
    first, second = visits([victims, decoys.take(used).joined(victims)], pool=decoys, seed=seed)
    behind = np.concatenate([victims.x, decoys.x])
    return Told(victims, first, behind, behind, second.payload)


STORIES: Mapping[str, Callable[[Visits, Dataset, Dataset, int, int], Told | None]] = {
    "grown": grown,
    "rescaled": rescaled,
    "pool": pool,
}


def _different(data: Dataset, besides: Dataset) -> Dataset:
    """One record of each kind, and none that looks like one of ``besides``."""
    kinds = hash_rows(np.concatenate([besides.x, data.x]))
    first = np.unique(kinds, axis=0, return_index=True)[1] - len(besides)
    return data.take(np.sort(first[first >= 0]))
