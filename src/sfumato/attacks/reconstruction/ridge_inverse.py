"""The inverse without training: the linear way back from payload to record, by least squares."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from sfumato.attacks.base import ReconstructionAttack
from sfumato.attacks.decoder_training import Memo
from sfumato.attacks.linear_alignment import Alignment, fit_alignment, own_pairs
from sfumato.core.dataset import FloatArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release


class RidgeInverse(ReconstructionAttack):
    """x ≈ mean + (payload − mean)·W in closed form, from the attacker's own pairs, kept within [0, 1]."""

    name = "inverse-ridge"
    title = "least squares"
    how = "the linear map from payloads to records, from few pairs"

    _fitted: Memo[Alignment] = field(default_factory=Memo, init=False)

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        align = self._fitted.get((knowledge.query, knowledge.auxiliary), lambda: self._fit(knowledge))
        found = align(release.payload.reshape(len(release), -1)).clip(0.0, 1.0)
        return np.asarray(found, dtype=np.float32).reshape(-1, *knowledge.auxiliary.schema.shape)

    def _fit(self, knowledge: Knowledge) -> Alignment:
        payload, own = own_pairs(knowledge)
        return fit_alignment(payload, own.x.reshape(len(own), -1), derive_seed(knowledge.seed, self.name))
