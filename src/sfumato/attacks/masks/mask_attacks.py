"""Attacks on the secret mask of ``ars``: granted, read off the release, or searched for (§6.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from sfumato.attacks.base import Attack, Guess, Measured
from sfumato.attacks.masks.substitute_decoders import (
    SubstituteDecoder,
    participant_missing,
    random_masks,
    shared,
    width,
)
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.intervals import share_interval
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release
from sfumato.nets.training_loop import as_tensor, forward_in_batches


class KnownMask(SubstituteDecoder):
    """The upper bound: the victims' masks are granted, and a decoder is trained for exactly these masks.

    The decoder reads the mask beside the representation, (N, 2h).
    """

    name = "sdec-known-mask"
    grants: ClassVar[tuple[str, ...]] = ("mask",)

    def obstacle(self, knowledge: Knowledge) -> str | None:
        missing = participant_missing(knowledge)
        return missing or ("needs the victims' masks" if "mask" not in knowledge.granted else None)

    def masks(self, release: Release, knowledge: Knowledge) -> FloatArray:
        """One mask for each party that released, (K, h)."""
        return knowledge.granted["mask"][: knowledge.parties]

    def inputs(self, data: Dataset, knowledge: Knowledge, seed: int) -> FloatArray:
        known = knowledge.granted["mask"]
        masks = known[np.random.default_rng(seed).integers(len(known), size=len(data))]
        return np.concatenate([shared(data, masks, knowledge), masks], axis=1)

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        masks = self.masks(release, knowledge)
        beside = masks[np.arange(len(release)) % len(masks)]
        known = replace(knowledge, granted={"mask": masks})
        return self.decode(np.concatenate([release.payload, beside], axis=1), known)


class ReadMask(KnownMask):
    """The masks are read off the release: a dimension that is perturbed spreads wider than one that is not."""

    name = "sdec-read-mask"
    grants = ()

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return participant_missing(knowledge)

    def masks(self, release: Release, knowledge: Knowledge) -> FloatArray:
        return masks_by_spread(release.payload, knowledge)


class SearchMask(KnownMask):
    """The brute-force search of §6.1: ``candidates`` random masks, and for each party the one that fits best.

    Where a mask is 0 the representation is clean, so a right guess of the record must encode to it there.
    """

    name = "sdec-search-mask"
    grants = ()

    candidates: int = 64
    records: int = 200

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return participant_missing(knowledge)

    def found(self, release: Release, knowledge: Knowledge) -> tuple[FloatArray, FloatArray]:
        """The mask that fits each party best, (K, h), and the records behind the release, read under it."""
        encoder = knowledge.encoder
        assert encoder is not None
        pool = random_masks(self.candidates, width(knowledge), derive_seed(knowledge.seed, self.name, "candidates"))
        known = replace(knowledge, granted={"mask": pool})
        best = np.empty((knowledge.parties, pool.shape[1]), dtype=np.float32)
        for party in range(knowledge.parties):
            some = release.payload[party :: knowledge.parties][: self.records]
            misfit = []
            for mask in pool:
                guess = self.decode(np.concatenate([some, np.tile(mask, (len(some), 1))], axis=1), known)
                again = forward_in_batches(encoder, as_tensor(guess)).numpy()
                misfit.append(float((np.square(again - some) * (1 - mask)).sum() / max(1.0, (1 - mask).sum())))
            best[party] = pool[int(np.argmin(misfit))]
        beside = best[np.arange(len(release)) % len(best)]
        return best, self.decode(np.concatenate([release.payload, beside], axis=1), known)

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        return self.found(release, knowledge)[1]


class MaskBySpread(Attack):
    """Reads the masks themselves; the guess is a mask for every released record, (N, h)."""

    name = "mask-by-spread"
    threat = "mask"
    undefended: ClassVar[Mapping[str, float]] = {"overlap": 1.0}  # a mask that is not kept secret

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return participant_missing(knowledge)

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        masks = masks_by_spread(release.payload, knowledge)
        return masks[np.arange(len(release)) % len(masks)]

    def trivial(self, knowledge: Knowledge, n: int) -> FloatArray:
        """Nothing known: ½ for every bit, scored as a coin."""
        return np.full((n, width(knowledge)), 0.5, dtype=np.float32)

    def measure(self, guess: Guess, truth: Truth) -> list[Measured]:
        """The overlapping rate of §6.1: the share of dimensions where the guessed mask is the victim's."""
        masks = truth.secret("mask")
        overlap = np.where(guess == 0.5, 0.5, guess == masks).astype(np.float64).mean(axis=1)
        interval = share_interval(overlap, truth.open().ids)
        return [Measured("overlap", "lower", float(overlap.mean()), interval, (0.0, 1.0), primary=True)]


def masks_by_spread(payload: FloatArray, knowledge: Knowledge) -> FloatArray:
    """The mask of each party (K, h), from the mean square of each dimension of what it released.

    What a masked and an unmasked dimension look like the attacker learns from shares of its own under random masks.
    """
    own = knowledge.auxiliary
    masks = random_masks(len(own), payload.shape[1], derive_seed(knowledge.seed, "spread"))
    squares = np.square(shared(own, masks, knowledge).astype(np.float64))
    moved = (squares * masks).sum(0) / np.maximum(1.0, masks.sum(0))
    still = (squares * (1 - masks)).sum(0) / np.maximum(1.0, (1 - masks).sum(0))
    found = []
    for party in range(knowledge.parties):
        spread = np.square(payload[party :: knowledge.parties].astype(np.float64)).mean(0)
        found.append(np.abs(spread - moved) < np.abs(spread - still))
    return np.stack(found).astype(np.float32)
