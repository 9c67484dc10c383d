"""A decoder of plain features, for attacks that have found out where in a message the feature is."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sfumato.attacks.decoder_training import Constant, Memo, Schedule, affordable, drawn, fit_decoder, held_out
from sfumato.attacks.rotations.message_algebra import features_of
from sfumato.core.dataset import FloatArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.randomness import derive_seed
from sfumato.nets.training_loop import as_tensor, channels_last, forward_in_batches
from sfumato.nets.unet import map_decoder


class PlainDecoder:
    """Feature → record, trained on the attacker's own features by the public encoder.

    ``unit``: of a feature only its line is known, not its length or sign; it is scaled to length √F, and turned to the
    side of the mean feature.
    """

    def __init__(
        self, *, unit: bool = False, epochs: int = 6, width: int = 32, fewest_steps: int = 500, records: int = 8000
    ) -> None:
        self.unit = unit
        self.epochs = epochs
        self.width = width
        self.fewest_steps = fewest_steps
        self.records = records
        self._trained: Memo[nn.Module] = Memo()

    def __repr__(self) -> str:
        return f"PlainDecoder(unit={self.unit}, epochs={self.epochs}, width={self.width}, records={self.records})"

    def decode(self, features: Tensor, knowledge: Knowledge) -> FloatArray:
        """The record behind each feature."""
        return forward_in_batches(self.train(knowledge), features).numpy()

    def train(self, knowledge: Knowledge) -> nn.Module:
        """Trained once for an encoder: plain features do not depend on keys."""
        return self._trained.get((knowledge.encoder, knowledge.auxiliary), lambda: self._train(knowledge))

    def _train(self, knowledge: Knowledge) -> nn.Module:
        seed = derive_seed(knowledge.seed, "plain-decoder", self.unit)
        sample = features_of(knowledge, knowledge.auxiliary.x[:256])
        val, fit = held_out(knowledge.auxiliary, seed, most=affordable(self.records, sample[0].numel()))
        target = as_tensor(fit.x)
        torch.manual_seed(seed)
        row, record = tuple(sample.shape[1:]), knowledge.auxiliary.schema.shape
        decoder = channels_last(map_decoder(row, record, self.width))
        return fit_decoder(
            nn.Sequential(_OneSide(sample.mean(0)), decoder) if self.unit else decoder,
            drawn(lambda: (features_of(knowledge, fit.x), target), every=0),
            (features_of(knowledge, val.x), as_tensor(val.x)),
            schedule=Schedule(epochs=self.epochs, fewest_steps=self.fewest_steps),
            seed=seed,
            otherwise=Constant(target.mean(0)),
        )


class _OneSide(nn.Module):
    """A feature without its length and sign."""

    mean: Tensor

    def __init__(self, mean: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)

    def forward(self, features: Tensor) -> Tensor:
        flat = features.flatten(1)
        side = torch.where(flat @ self.mean.flatten() < 0, -1.0, 1.0)
        length = flat.norm(dim=1).clamp_min(1e-20) / flat.shape[1] ** 0.5
        line: Tensor = flat * (side / length)[:, None]
        return line.view_as(features)
