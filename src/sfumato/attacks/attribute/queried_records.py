"""The attacker's own records through the protected pipeline, asked once for all probes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks.decoder_training import Memo, affordable
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.randomness import derive_seed

_PROBED = 64
"""Records whose payloads say how wide a payload is."""
_FEWEST_DRAWS, _MOST_DRAWS = 2, 100
"""Fewer records are queried rather than fewer times."""
_COPIES = 4
"""More than the fewest draws only where readers can prepare copies of them."""


@dataclass(frozen=True)
class Queried:
    """Records, and the payloads of each query, (draws, N, F)."""

    data: Dataset
    payloads: FloatArray


class QueriedRecords:
    """At most ``records`` records, each ``draws`` times where the pipeline is randomised, within a gigabyte.

    Fewer records are queried more often, up to 100 times each: no more than ``draws · records`` queries in all.
    """

    def __init__(self, *, records: int = 20_000, draws: int = 12) -> None:
        self.records, self.draws = records, draws
        self._known: Memo[Queried] = Memo()

    def __repr__(self) -> str:
        return f"QueriedRecords(records={self.records}, draws={self.draws})"

    def of(self, knowledge: Knowledge) -> Queried:
        """The records and payloads of this pipeline."""
        return self._known.get((knowledge.query, knowledge.auxiliary), lambda: self._ask(knowledge))

    def _ask(self, knowledge: Knowledge) -> Queried:
        query, data = knowledge.query, knowledge.auxiliary
        assert query is not None  # obstacle() has seen to it
        size = query(data.take(slice(0, _PROBED)))[0].size
        few = min(_FEWEST_DRAWS, self.draws) if knowledge.randomised else 1
        order = np.random.default_rng(derive_seed(knowledge.seed, "queried records")).permutation(len(data))
        sample = data.take(order[: affordable(self.records, few * size)])
        draws = min(_MOST_DRAWS, self.draws * self.records // len(sample))
        draws = affordable(draws, _COPIES * len(sample) * size) if knowledge.randomised else 1
        payloads = np.empty((draws, len(sample), size), dtype=np.float32)
        for number in range(draws):
            payloads[number] = query(sample).reshape(len(sample), size)
        return Queried(sample, payloads)
