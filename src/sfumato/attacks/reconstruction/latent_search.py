"""The white-box attacker with a generative prior: it looks among records that a decoder z → record can draw."""

from __future__ import annotations

from dataclasses import field

import torch
from torch import Tensor, nn

from sfumato.attacks.decoder_training import Memo
from sfumato.attacks.reconstruction.encoder_inversion import EncoderInversion, View, descend, least
from sfumato.core.knowledge import Knowledge
from sfumato.core.randomness import derive_seed
from sfumato.nets.generative_prior import fit_prior
from sfumato.nets.training_loop import as_tensor, forward_in_batches

_DRAWN = 512
"""Latents that are drawn to find where to start."""
_RATE = 0.1
_COST = 0.03
"""Of |z|²: little, since drawn records are likely ones already."""


class LatentSearch(EncoderInversion):
    """argmin |E(G(z)) − payload|²/s + c·|z|² over z, and from there on over the record itself.

    G is ``prior``, a public pre-trained decoder (B, latent) → (B, *shape), or else that of a small autoencoder which
    the attacker trains on records of its own. Of many drawn records those with the nearest features start the search.
    """

    version = 2

    name = "inverse-latent"
    title = "argmin G(z)"
    how = "an optimiser looks among the records that a generative model can draw"

    prior: nn.Module | None = None
    latent: int = 32
    training: int = 500
    _learnt: Memo[nn.Module] = field(default_factory=Memo, init=False)

    def first_guesses(self, view: View, payload: Tensor, knowledge: Knowledge) -> list[Tensor]:
        """The records that G can draw and that encode to the payload most nearly."""
        prior, seed = self._prior(knowledge), derive_seed(knowledge.seed, self.name, "draws")
        z = torch.randn(_DRAWN, self.latent, generator=torch.Generator().manual_seed(seed))
        features = forward_in_batches(nn.Sequential(prior, view.encoder), z).flatten(1)
        rows = torch.cdist(payload.flatten(1), features).topk(self.starts, largest=False).indices  # (N, starts)

        def cost(z: Tensor) -> Tensor:
            return view.misfit(prior(z), payload) + _COST * z.square().sum(1)

        found = [descend(cost, z[rows[:, place]], self.steps, _RATE, box=False) for place in range(self.starts)]
        with torch.no_grad():
            return [prior(least(cost, found)).clamp(0.0, 1.0)]

    def _prior(self, knowledge: Knowledge) -> nn.Module:
        if self.prior is not None:
            return self.prior.eval().requires_grad_(False)
        return self._learnt.get((knowledge.auxiliary,), lambda: self._train(knowledge))

    def _train(self, knowledge: Knowledge) -> nn.Module:
        own = self.inverse.own_records(knowledge)[1]
        seed = derive_seed(knowledge.seed, self.name)
        return fit_prior(own.schema.kind, as_tensor(own.x), self.latent, self.training, seed)
