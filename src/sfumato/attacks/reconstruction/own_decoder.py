"""The decoder that comes with the mechanism, for whoever has it: no training, and no fresh adversary."""

from __future__ import annotations

import numpy as np

from sfumato.attacks.base import ReconstructionAttack
from sfumato.core.dataset import FloatArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.release import Release


class OwnDecoder(ReconstructionAttack):
    """Reads the release with the mechanism's own decoder (``ran``: the one that its encoder was trained against).

    The encoder knew this decoder, so its error says nothing of what others can rebuild; the paper of ``ran`` draws it
    beside that of a fresh one.
    """

    name = "own-decoder"
    title = "the mechanism's own decoder"
    how = "no training"

    def obstacle(self, knowledge: Knowledge) -> str | None:
        missing = knowledge.model is None or knowledge.model.decode is None
        return super().obstacle(knowledge) or ("needs the mechanism's own decoder" if missing else None)

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        assert knowledge.model is not None and knowledge.model.decode is not None
        return np.clip(knowledge.model.decode(release.payload), 0.0, 1.0)
