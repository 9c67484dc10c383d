"""What is read of messages that no key has turned: their first row is the feature."""

from __future__ import annotations

import numpy as np

from sfumato.attacks.base import ReconstructionAttack
from sfumato.attacks.rotations.feature_decoder import PlainDecoder
from sfumato.attacks.rotations.list_decoder import ListAttack
from sfumato.core.dataset import FloatArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.release import Release
from sfumato.nets.training_loop import as_tensor


class ReadFeature(ReconstructionAttack):
    """Decodes the first row."""

    name = "inverse-feature"

    decoder: PlainDecoder

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        return self.decoder.decode(as_tensor(np.ascontiguousarray(release.payload[:, 0])), knowledge)


class ReadEveryRow(ListAttack):
    """Decodes each row."""

    name = "list-features"

    decoder: PlainDecoder

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        rows = [np.ascontiguousarray(release.payload[:, row]) for row in range(release.payload.shape[1])]
        return np.stack([self.decoder.decode(as_tensor(row), knowledge) for row in rows], axis=1)
