"""What commands say about records that a file holds more than once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import Dataset
from sfumato.core.traits import Traits

Warn = Callable[[str], None]
_WORTH_SAYING = 0.01
"""A smaller share of repeated records goes unmentioned."""


class RepeatedRecords:
    """Counts, over the pieces of a file, how many records share their content with another: 8 bytes a record."""

    def __init__(self) -> None:
        self._seen: list[npt.NDArray[np.uint64]] = []

    def add(self, data: Dataset) -> None:
        self.add_words(content_words(data))

    def add_words(self, words: npt.NDArray[np.uint64]) -> None:
        """Further records, by their ``content_words``."""
        self._seen.append(words)

    def sentence(self, traits: Traits) -> str | None:
        """What that means for what leaves, or None where hardly any record has a copy or none leaves."""
        counts = np.unique(np.concatenate(self._seen), return_counts=True)[1]
        records, repeated = int(counts.sum()), int(counts[counts > 1].sum())
        if repeated < _WORTH_SAYING * records or traits.synthetic:
            return None
        found = f"{repeated:,} of {records:,} records share their content with another"
        if traits.rows_per_message > 1:
            return f"{found}: whoever sees all messages finds what two of them have in common, and so what repeats."
        return (
            f"{found}: copies leave as equal payloads, or differ by noise alone, so that whoever knows how frequent "
            "each record is may count them (see the counting attacks of the audit)."
        )


def content_words(data: Dataset) -> npt.NDArray[np.uint64]:
    """(N,): equal where records share their content."""
    return np.ascontiguousarray(data.origin.contents[:, :8]).view(np.uint64)[:, 0]


def warn_of_repeats(data: Dataset, traits: Traits, warn: Warn) -> None:
    """Say how many of these records share their content, if many do."""
    repeated = RepeatedRecords()
    repeated.add(data)
    sentence = repeated.sentence(traits)
    if sentence is not None:
        warn(sentence)
