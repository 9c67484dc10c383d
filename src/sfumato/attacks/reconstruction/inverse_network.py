"""The inverse network: a decoder trained on the protected pipeline with the attacker's own records."""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from sfumato.attacks.base import ReconstructionAttack
from sfumato.attacks.decoder_training import Constant, Memo, Schedule, affordable, drawn, fit_decoder, held_out
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release
from sfumato.nets.carried_weights import carry_over
from sfumato.nets.encoders import output_shape
from sfumato.nets.mirror_decoder import NotAChain, mirror
from sfumato.nets.residual_decoder import residual_decoder
from sfumato.nets.training_loop import as_tensor, channels_last, forward_in_batches

_LESS = 4
"""So many times fewer steps take a decoder on that has learnt already."""


class InverseNetwork(ReconstructionAttack):
    """Minimises |x − D(payload(x))|² over the auxiliary records.

    ``mirror`` is the paper's attacker, the encoder upside down; ``residual`` a stronger one for any payload. A
    randomised pipeline is queried anew every epoch. The epoch that is best on a held-out tenth of the auxiliary
    records is kept, or the mean record if that is better still: a failed training must not flatter the defence. An
    attacker with few records passes over them more often, until it has taken ``fewest_steps``.
    """

    version = 2

    renew_every: ClassVar[int] = 1
    title = "dec(x)"
    how = "a decoder reads the message as it is"

    decoder: Literal["mirror", "residual"] = "residual"
    epochs: int = 6
    batch: int = 64
    rate: float = 6e-3
    width: int = 32
    fewest_steps: int = 500
    renewals: int = 0
    _trained: Memo[nn.Module] = field(default_factory=Memo, init=False)

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"inverse-{self.decoder}"

    @property
    def yardstick(self) -> bool:  # type: ignore[override]
        return self.decoder == "residual"

    def obstacle(self, knowledge: Knowledge) -> str | None:
        reason = super().obstacle(knowledge)
        if reason is None and self.decoder == "mirror":
            if knowledge.encoder is None:
                return "needs the public encoder to mirror"
            if knowledge.own_device is not None:
                return "a rotated message is not the encoder's output"
            try:
                mirror(knowledge.encoder, knowledge.auxiliary.schema.shape)
            except NotAChain as error:
                return f"cannot mirror the encoder: {error}"
        return reason

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        return self.decode(release.payload, knowledge)

    def decode(self, payload: FloatArray, knowledge: Knowledge) -> FloatArray:
        """The record behind every payload."""
        return forward_in_batches(self.train(knowledge), as_tensor(payload)).numpy()

    def train(self, knowledge: Knowledge) -> nn.Module:
        """The decoder for this pipeline; trained once, also for the attacks that build on it."""
        return self._trained.get((knowledge.query, knowledge.auxiliary), lambda: self._train(knowledge))

    def train_on(self, knowledge: Knowledge, known: nn.Module, beside: int) -> nn.Module:
        """A decoder for a pipeline that says ``beside`` channels more than that of ``known``, learnt on from there.

        That takes a share of the steps, unless what is said now takes another kind of network.
        """
        return self._train(knowledge, known, beside)

    def _train(self, knowledge: Knowledge, known: nn.Module | None = None, beside: int = 0) -> nn.Module:
        query = knowledge.query
        assert query is not None  # obstacle() has seen to it
        seed = derive_seed(knowledge.seed, self.name)
        val, fit = self.own_records(knowledge)
        target = as_tensor(fit.x)
        every = self._renewed_every(len(fit)) if knowledge.randomised else 0
        draw = drawn(lambda: (as_tensor(query(fit)), target), every=every)
        held = as_tensor(query(val)), as_tensor(val.x)
        torch.manual_seed(seed)
        network = channels_last(self._network(knowledge, draw(0)[0][:512], beside))
        schedule = Schedule(self.epochs, self.batch, self.rate, self.fewest_steps)
        if known is not None and carry_over(known, network):
            epochs, steps = math.ceil(self.epochs / _LESS), math.ceil(self.fewest_steps / _LESS)
            schedule = replace(schedule, epochs=epochs, fewest_steps=steps, rate=self.rate / 2)
        return fit_decoder(
            network,
            draw,
            held,
            schedule=schedule,
            seed=seed,
            otherwise=Constant(target.mean(0)),
        )

    def own_records(self, knowledge: Knowledge) -> tuple[Dataset, Dataset]:
        """The attacker's records that the decoder is judged by, and those that it learns from."""
        seed = derive_seed(knowledge.seed, self.name)
        return held_out(knowledge.auxiliary, seed, most=self._most(knowledge))

    def _renewed_every(self, records: int) -> int:
        """So many epochs learn from the same answers."""
        passes = max(self.epochs, self.fewest_steps // (records // self.batch + 1))
        return max(self.renew_every, passes // self.renewals if self.renewals else 0)

    def _most(self, knowledge: Knowledge) -> int:
        """All records, unless a rotated pipeline makes more of them than fits into memory."""
        most = len(knowledge.auxiliary)
        if knowledge.own_device is None:
            return most
        sample = knowledge.own_device(knowledge.auxiliary.take(slice(0, 64))).payload
        return affordable(most, sample[0].size)

    def _network(self, knowledge: Knowledge, sample: Tensor, beside: int = 0) -> nn.Module:
        payload, record = tuple(sample.shape[1:]), knowledge.auxiliary.schema.shape
        if self.decoder == "residual":
            return residual_decoder(payload, record, self.width, beside=beside)
        assert knowledge.encoder is not None  # obstacle() has seen to it
        features = output_shape(knowledge.encoder, record)
        upside_down = mirror(knowledge.encoder, record)
        if payload == features:
            return upside_down
        return nn.Sequential(  # what left is not the feature itself: learn the way back to it first
            nn.Flatten(),
            nn.Linear(torch.Size(payload).numel(), torch.Size(features).numel()),
            nn.Unflatten(1, features),
            upside_down,
        )
