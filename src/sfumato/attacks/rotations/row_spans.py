"""Attacks by linear algebra on the row span of a message, which no key changes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sfumato.attacks.base import ReconstructionAttack, ReidentificationAttack
from sfumato.attacks.rotations.feature_decoder import PlainDecoder
from sfumato.attacks.rotations.inverse_frame import repeats_missing
from sfumato.attacks.rotations.message_algebra import device_missing, encoder_missing, features_of, span_basis
from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.release import Release
from sfumato.nets.training_loop import as_tensor

_AT_ONCE = 30_000_000
"""Numbers of spans held at once."""


class IntersectSpans(ReconstructionAttack):
    """The line that the row spans of several messages of one record have in common, decoded.

    It is the leading eigenvector of the sum of the projectors onto the spans. With decoys that change it is the
    record's feature, exactly; with decoys that stay the spans are one and the same, and it is any line in it.
    """

    name = "inverse-intersect"
    title = "intersection of n releases"
    how = "what several messages of one record have in common"
    wants_repeats = True

    decoder: PlainDecoder

    def obstacle(self, knowledge: Knowledge) -> str | None:
        missing = super().obstacle(knowledge) or device_missing(knowledge) or encoder_missing(knowledge)
        return missing or repeats_missing(knowledge)

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        payloads = [as_tensor(payload) for payload in (release.payload, *knowledge.repeats)]
        batch = max(1, _AT_ONCE // (len(payloads) * payloads[0][0].numel()))
        rows = range(0, len(release), batch)
        lines = torch.cat([common_line([payload[row : row + batch] for payload in payloads]) for row in rows])
        return self.decoder.decode(lines.view(len(release), *release.payload.shape[2:]), knowledge)


def common_line(messages: list[Tensor]) -> Tensor:
    """Of several messages (B, d, …) of the same records, the unit vector (B, F) that is nearest to all row spans."""
    spans = torch.cat([span_basis(each) for each in messages], 1)  # (B, K·d, F)
    weights = torch.linalg.eigh((spans @ spans.mT).double())[1][:, :, -1].float()  # (B, K·d)
    return torch.nn.functional.normalize(torch.einsum("nk,nkf->nf", weights, spans), dim=1)


class ReidentifyBySpan(ReidentificationAttack):
    """The candidate whose public feature lies closest to the message's row span.

    Exact, by algebra, for every key: the features of all d records of a message lie in its span. So the record is
    found, unless its decoys stand in the line-up too; then they are found as often. A key hides which of the d rows is
    the record, never which d records these are.
    """

    name = "reid-span"

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return super().obstacle(knowledge) or device_missing(knowledge) or encoder_missing(knowledge)

    def guess(self, release: Release, knowledge: Knowledge) -> IntArray:
        assert knowledge.candidates is not None  # obstacle() has seen to it
        features = features_of(knowledge, knowledge.candidates.x).flatten(1)
        lines = torch.nn.functional.normalize(features, dim=1)  # (M, F)
        places = []
        for part in torch.split(as_tensor(release.payload), 256):
            inside = (span_basis(part) @ lines.T).square().sum(1)  # (B, M): 1 − relative residual²
            places.append(inside.argmax(1))
        return np.asarray(torch.cat(places).numpy(), dtype=np.int64)
