"""Re-identification: which of N candidates is behind a released record?"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.attacks.base import ReidentificationAttack
from sfumato.attacks.linear_alignment import fit_alignment, own_pairs
from sfumato.attacks.public_encoder import encoded, mismatch
from sfumato.attacks.reconstruction.inverse_network import InverseNetwork
from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release

_REPEATS = 8
"""How often a randomised pipeline is queried for each candidate."""
_AT_ONCE = 2000
"""Points that are compared with all rows at once."""


class ReidentifyByQuery(ReidentificationAttack):
    """Send every candidate through the pipeline and take the nearest payload.

    Against a deterministic public encoder this is certain: such a release can never hide *which* of a known set of
    records it came from.
    """

    name = "reid-query"

    def guess(self, release: Release, knowledge: Knowledge) -> IntArray:
        assert knowledge.query is not None and knowledge.candidates is not None  # obstacle() has seen to it
        repeats = _REPEATS if knowledge.randomised else 1
        answers = _flat(knowledge.query(knowledge.candidates))
        for _ in range(repeats - 1):
            answers = answers + _flat(knowledge.query(knowledge.candidates))
        return nearest(_flat(release.payload), answers / np.float32(repeats))


class ReidentifyByEncoder(ReidentificationAttack):
    """Send every candidate through the public encoder, without any noise, and take the nearest to the payload.

    For payloads z + ε·N(0, 1) that is the most likely candidate; a mean of queries has noise of its own left. Without
    an encoder the record itself is what the noise was added to.
    """

    name = "reid-encode"

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return super().obstacle(knowledge) or mismatch(knowledge)

    def guess(self, release: Release, knowledge: Knowledge) -> IntArray:
        assert knowledge.candidates is not None  # obstacle() has seen to it
        return nearest(_flat(release.payload), _flat(encoded(knowledge, knowledge.candidates)))


class ReidentifyByDecoding(ReidentificationAttack):
    """Rebuild the record with an inverse network and take the nearest candidate."""

    name = "reid-decode"

    inverse: InverseNetwork

    def guess(self, release: Release, knowledge: Knowledge) -> IntArray:
        assert knowledge.candidates is not None  # obstacle() has seen to it
        return nearest(_flat(self.inverse.guess(release, knowledge)), _flat(knowledge.candidates.x))


class ReidentifyByAlignment(ReidentificationAttack):
    """Map every candidate to a payload by least squares, and take the likeliest: pairs of other records are enough."""

    name = "reid-align"

    def guess(self, release: Release, knowledge: Knowledge) -> IntArray:
        assert knowledge.candidates is not None  # obstacle() has seen to it
        payload, own = own_pairs(knowledge)
        align = fit_alignment(_flat(own.x), payload, derive_seed(knowledge.seed, self.name))
        expected, found = align(_flat(knowledge.candidates.x)), _flat(release.payload).astype(np.float64)
        return nearest(align.whitened(found), align.whitened(expected))


def nearest(points: npt.NDArray[Any], among: npt.NDArray[Any]) -> IntArray:
    """For each point the index of the nearest row, by Euclidean distance."""
    lengths = (among**2).sum(axis=1)
    found = np.empty(len(points), dtype=np.int64)
    for start in range(0, len(points), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        found[some] = (lengths - 2.0 * points[some] @ among.T).argmin(axis=1)  # (n, M), less |point|²
    return found


def _flat(values: FloatArray) -> FloatArray:
    return values.reshape(len(values), -1)
