"""What the utility labels that leave with a release say: alone, and beside the payload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import ClassVar

import numpy as np
from torch import nn

from sfumato.attacks.base import AttributeAttack, ReconstructionAttack
from sfumato.attacks.decoder_training import Memo
from sfumato.attacks.label_codes import beside, labels_missing, mean_of_same_labels
from sfumato.attacks.reconstruction.inverse_network import InverseNetwork
from sfumato.core.dataset import FloatArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.metrics import PSNR_CAP
from sfumato.core.release import Release
from sfumato.core.threats import ATTRIBUTE_WITH_LABELS, RECONSTRUCTION_WITH_LABELS
from sfumato.nets.training_loop import as_tensor, forward_in_batches


class LabelOnly(AttributeAttack):
    """The shares of a private label among the attacker's own records with the same utility labels."""

    name = "label-only"
    threat = ATTRIBUTE_WITH_LABELS

    label: str

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return labels_missing(knowledge)

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        own = knowledge.auxiliary
        classes = np.eye(len(own.schema.classes(self.label)), dtype=np.float32)
        return mean_of_same_labels(release.utility, own, classes[own.label(self.label)])


class LabelMean(ReconstructionAttack):
    """The mean of the attacker's own records with the same utility labels."""

    name = "label-mean"
    threat = RECONSTRUCTION_WITH_LABELS

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return labels_missing(knowledge)

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        return mean_of_same_labels(release.utility, knowledge.auxiliary, knowledge.auxiliary.x)


class InverseWithLabels(ReconstructionAttack):
    """An inverse network that has learnt to read the payload, and learns on with the utility labels beside it."""

    version = 3

    name = "inverse-residual+labels"
    threat = RECONSTRUCTION_WITH_LABELS
    undefended: ClassVar[Mapping[str, float]] = {
        "mse": 0.0,
        "l1": 0.0,
        "psnr": PSNR_CAP,
        "ssim": 1.0,
        "category-accuracy": 1.0,
        "whole-record": 1.0,
    }
    """A raw record is its own reconstruction."""

    inverse: InverseNetwork
    _trained: Memo[nn.Module] = field(default_factory=Memo, init=False)

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return super().obstacle(knowledge) or labels_missing(knowledge)

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        query, schema = knowledge.query, knowledge.auxiliary.schema
        assert query is not None  # obstacle() has seen to it
        asking = replace(knowledge, query=lambda data: beside(query(data), data.utility, schema))
        payload = beside(release.payload, release.utility, schema)
        more = payload.shape[1] - release.payload.shape[1]
        network = self._trained.get(
            (query, knowledge.auxiliary), lambda: self.inverse.train_on(asking, self.inverse.train(knowledge), more)
        )
        return forward_in_batches(network, as_tensor(payload)).numpy()
