"""Reconstruction from rotated messages by what the key leaves as it was."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from torch import Tensor, nn

from sfumato.attacks.base import ReconstructionAttack
from sfumato.attacks.reconstruction.inverse_network import InverseNetwork
from sfumato.attacks.rotations.message_algebra import Frame, device_missing, most_records
from sfumato.core.dataset import FloatArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.release import Release
from sfumato.nets.unet import map_decoder


class InverseFrame(InverseNetwork):
    """An inverse network that reads every message in its own frame, where a key from SO(d) has no effect at all.

    Where keys or decoys do not tell the record from its decoys, the best single guess is the mean of the d records.
    """

    renew_every: ClassVar[int] = 2
    title = "rotation invariants"
    how = "a decoder reads what no rotation changes"

    records: int = 15_000

    @property
    def name(self) -> str:  # type: ignore[override]
        return "inverse-frame"

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return super().obstacle(knowledge) or device_missing(knowledge)

    def _most(self, knowledge: Knowledge) -> int:
        return most_records(knowledge, self.records)

    def _network(self, knowledge: Knowledge, sample: Tensor, beside: int = 0) -> nn.Module:
        d, *row = sample.shape[1:]
        return nn.Sequential(Frame(sample), map_decoder((d + 1, *row), knowledge.auxiliary.schema.shape, self.width))


class AverageFrame(ReconstructionAttack):
    """The mean of the guesses for a release and its repeats: decoys that change from one to the next average out."""

    name = "inverse-average"
    title = "average of n releases"
    how = "changing decoys average out"
    wants_repeats = True

    inverse: InverseFrame

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return self.inverse.obstacle(knowledge) or repeats_missing(knowledge)

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        total = self.inverse.guess(release, knowledge).astype(np.float64)
        for payload in knowledge.repeats:
            total += self.inverse.decode(payload, knowledge)
        return np.asarray(total / (1 + len(knowledge.repeats)), dtype=np.float32)


def repeats_missing(knowledge: Knowledge) -> str | None:
    return None if knowledge.repeats else "needs several releases of the same records"
