"""Which text, or other record, is behind a vector? Asked in an embedding that anybody can compute."""

from __future__ import annotations

from sfumato.attacks.base import ReidentificationAttack
from sfumato.attacks.linear_alignment import fit_alignment
from sfumato.attacks.reidentification.candidates import nearest
from sfumato.core.dataset import IntArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release


class ReidentifyInPublic(ReidentificationAttack):
    """Map payloads to a public embedding by least squares from about 1,000 known pairs, and take the likeliest
    candidate there, as ALGEN does (arXiv 2502.11308).

    It needs nothing of the model behind the payloads: no weights, no query, not even the record's numbers. It needs a
    list of candidate texts, and some payloads whose texts are known.
    """

    name = "reid-public"
    title = "alignment with a public embedding"
    how = "the linear map from payloads to a public embedding, from few pairs, then the nearest candidate"

    pairs: int = 1_000

    def obstacle(self, knowledge: Knowledge) -> str | None:
        missing = "needs the candidates in a public embedding (--public)" if knowledge.public is None else None
        return super().obstacle(knowledge) or missing

    def guess(self, release: Release, knowledge: Knowledge) -> IntArray:
        assert knowledge.query is not None and knowledge.public is not None  # obstacle() has seen to it
        few = slice(0, self.pairs)
        known = knowledge.query(knowledge.auxiliary.take(few))
        view = knowledge.public
        align = fit_alignment(known.reshape(len(known), -1), view.own[few], derive_seed(knowledge.seed, self.name))
        found = align(release.payload.reshape(len(release), -1))
        return nearest(align.whitened(found), align.whitened(view.candidates.astype(found.dtype)))
