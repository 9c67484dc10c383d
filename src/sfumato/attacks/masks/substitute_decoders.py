"""Substitute decoders: what a curious party of ``ars`` trains on its own records to read the others' (§4.1, §4.3)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import field, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from sfumato.attacks.base import ReconstructionAttack
from sfumato.attacks.decoder_training import Constant, Memo, Pair, Schedule, drawn, fit_decoder, held_out
from sfumato.attacks.reconstruction.inverse_network import InverseNetwork
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.randomness import Seeded, derive_seed
from sfumato.core.release import Release
from sfumato.nets.autoencoders import is_convolved, substitute_decoder
from sfumato.nets.training_loop import as_tensor, channels_last, forward_in_batches

_IN_EPOCH, _SMALLEST = 32, 32
"""Convolutions are dear: with few records they learn from smaller batches, so that an epoch has many steps."""
_RENEWED = 12
"""So often pairs are made in one training: noise for a record costs ten times what learning from it does."""


class SubstituteDecoder(ReconstructionAttack):
    """A decoder trained on pairs that the attacker makes itself; a subclass says how.

    Of the parties' own make and, where that is fully connected, ``width`` times as wide: on latents a small network
    trains to the end where a large one would not. A held-out tenth judges the epochs, the best one counts, and the
    mean record if that is better.
    """

    fresh: ClassVar[bool] = True
    """Whether pairs that are made again are other pairs."""

    epochs: int = 24
    batch: int = 128
    rate: float = 4e-3
    width: int = 2
    steps: int = 2000
    _trained: Memo[torch.nn.Module] = field(default_factory=Memo, init=False)

    @abstractmethod
    def inputs(self, data: Dataset, knowledge: Knowledge, seed: int) -> FloatArray:
        """What the decoder reads for the attacker's own records, (N, …)."""

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        return self.decode(release.payload, knowledge)

    def decode(self, payload: FloatArray, knowledge: Knowledge) -> FloatArray:
        """The record behind everything that is read like ``inputs``."""
        network = self._trained.get(self.learnt_from(knowledge), lambda: self.train(knowledge))
        return forward_in_batches(network, as_tensor(payload)).numpy()

    def learnt_from(self, knowledge: Knowledge) -> tuple[object, ...]:
        """What another decoder would be trained for."""
        return knowledge.participant, knowledge.encoder, knowledge.auxiliary, knowledge.granted.get("mask")

    def train(self, knowledge: Knowledge) -> torch.nn.Module:
        """The decoder; a dozen times the pairs are made anew, if they are others then."""
        seed = derive_seed(knowledge.seed, self.name)
        val, fit = held_out(knowledge.auxiliary, seed)
        target = as_tensor(fit.x)
        calls = 0

        def pairs() -> Pair:
            nonlocal calls
            calls += 1
            return as_tensor(self.inputs(fit, knowledge, derive_seed(seed, "pairs", calls))), target

        batch = self.batch
        if is_convolved(fit.schema.kind, fit.schema.shape):
            batch = min(batch, max(_SMALLEST, len(fit) // _IN_EPOCH))
        passes = max(self.epochs, self.steps // (len(fit) // batch + 1))
        draw = drawn(pairs, every=max(1, passes // _RENEWED) if self.fresh else 0)
        held = as_tensor(self.inputs(val, knowledge, derive_seed(seed, "held"))), as_tensor(val.x)
        torch.manual_seed(seed)
        return fit_decoder(
            self.network(held[0], knowledge),
            draw,
            held,
            schedule=Schedule(self.epochs, batch, self.rate, self.steps),
            seed=seed,
            otherwise=Constant(target.mean(0)),
        )

    def network(self, sample: Tensor, knowledge: Knowledge) -> torch.nn.Module:
        """The untrained decoder."""
        schema = knowledge.auxiliary.schema
        wider = 1 if is_convolved(schema.kind, schema.shape) else self.width
        return channels_last(substitute_decoder(schema.kind, schema.shape, sample.shape[1], wider))


class CleanDecoder(SubstituteDecoder):
    """SDec of Eq. 8, trained on clean latents: the attacker that the noise was made against."""

    name = "sdec"
    fresh = False

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return "needs the published encoder" if knowledge.encoder is None else participant_missing(knowledge)

    def learnt_from(self, knowledge: Knowledge) -> tuple[object, ...]:
        return knowledge.encoder, knowledge.auxiliary

    def inputs(self, data: Dataset, knowledge: Knowledge, seed: int) -> FloatArray:
        assert knowledge.encoder is not None  # obstacle() has seen to it
        return forward_in_batches(knowledge.encoder, as_tensor(data.x)).numpy()


class OwnMask(SubstituteDecoder):
    """SDec′ of Eq. 11: data enhancement with noise of the attacker's own, under its own mask. The paper's attacker."""

    name = "sdec-own-mask"
    fresh = False

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return participant_missing(knowledge)

    def inputs(self, data: Dataset, knowledge: Knowledge, seed: int) -> FloatArray:
        mask = random_masks(1, width(knowledge), derive_seed(knowledge.seed, self.name, "mask"))
        return shared(data, np.repeat(mask, len(data), axis=0), knowledge)


class AnyMask(OwnMask):
    """SDec′ trained over random masks, a fresh one for every record and epoch: it need not know the victim's."""

    name = "sdec-any-mask"
    fresh = True

    def inputs(self, data: Dataset, knowledge: Knowledge, seed: int) -> FloatArray:
        return shared(data, random_masks(len(data), width(knowledge), seed), knowledge)


class AverageShares(ReconstructionAttack):
    """The mean of several releases of the same records, read by a decoder that was trained on such means."""

    name = "inverse-average"
    wants_repeats = True
    _averaged: ClassVar[str] = "a record leaves in the same way every time: there is nothing to average"

    inverse: InverseNetwork

    def obstacle(self, knowledge: Knowledge) -> str | None:
        if not knowledge.repeats:
            return "needs several releases of the same records"
        first, *rest = knowledge.repeats
        same = all(np.array_equal(first, payload) for payload in rest) and len(knowledge.repeats) > 1
        return self._averaged if same else super().obstacle(knowledge)

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        query, times = knowledge.query, 1 + len(knowledge.repeats)
        assert query is not None  # obstacle() has seen to it

        def mean_query(data: Dataset) -> FloatArray:
            return np.asarray(sum(query(data).astype(np.float64) for _ in range(times)) / times, dtype=np.float32)

        payload = (release.payload.astype(np.float64) + sum(knowledge.repeats)) / times
        return self.inverse.decode(payload.astype(np.float32), replace(knowledge, query=mean_query))


def participant_missing(knowledge: Knowledge) -> str | None:
    return "needs parties that mask their noise" if knowledge.participant is None else None


def shared(data: Dataset, masks: FloatArray, knowledge: Knowledge) -> FloatArray:
    """What the attacker, as a party, would share of ``data`` under these masks."""
    assert knowledge.participant is not None  # obstacle() has seen to it
    return knowledge.participant(data, masks)


def width(knowledge: Knowledge) -> int:
    """h, the numbers in one representation."""
    assert knowledge.encoder is not None
    one = knowledge.auxiliary.x[:1]
    return int(forward_in_batches(knowledge.encoder, as_tensor(one)).shape[1])


def random_masks(count: int, h: int, seed: int) -> FloatArray:
    """Masks as the parties draw them: each dimension 0 or 1 with equal chance."""
    return (Seeded(seed).uniform((count, h)) < 0.5).astype(np.float32)
