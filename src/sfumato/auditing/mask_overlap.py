"""What a partly right mask is worth: the error of a decoder trained under masks that overlap the victims' (§6.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sfumato.attacks.base import Measured, measure_reconstruction
from sfumato.attacks.masks.mask_attacks import KnownMask, SearchMask, masks_by_spread
from sfumato.core.dataset import Dataset, FloatArray, Splits
from sfumato.core.errors import UsageError
from sfumato.core.knowledge import Knowledge
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.capabilities import HasEncoder, HasParticipants, Keyed
from sfumato.nets.training_loop import as_tensor, forward_in_batches


@dataclass(frozen=True)
class Overlap:
    """The attacker's mask of each party agrees with its true one in this share of the dimensions, on average."""

    rate: float
    error: Measured


@dataclass(frozen=True)
class MaskedRelease:
    """The victims' release by parties under masks (K, h), and what a curious party knows."""

    splits: Splits
    release: Release
    masks: FloatArray
    knowledge: Knowledge
    steps: int

    def under(self, masks: FloatArray) -> Overlap:
        """A decoder that is trained under these masks, one for each party, (K, h)."""
        attack = KnownMask(epochs=1, steps=self.steps)
        guess = attack.guess(self.release, replace(self.knowledge, granted={"mask": masks}))
        return self._overlap(masks, guess)

    def at(self, rate: float) -> Overlap:
        """Masks that agree with the parties' in this share of the dimensions."""
        seed = self.knowledge.seed
        return self.under(np.stack([flipped(m, rate, derive_seed(seed, rate, k)) for k, m in enumerate(self.masks)]))

    def searched(self, candidates: int = 64) -> Overlap:
        """The best of so many random masks for each party: the brute-force search."""
        attack = SearchMask(epochs=1, steps=self.steps, candidates=candidates)
        return self._overlap(*attack.found(self.release, self.knowledge))

    def read(self) -> float:
        """The share of the masks that the spread of the release gives away."""
        return float((masks_by_spread(self.release.payload, self.knowledge) == self.masks).mean())

    def _overlap(self, masks: FloatArray, guess: FloatArray) -> Overlap:
        error = next(m for m in measure_reconstruction(self.splits.victim, guess) if m.metric == "mse")
        return Overlap(float((masks == self.masks).mean()), error)


def masked_release(mechanism: Mechanism, splits: Splits, *, seed: int, steps: int = 2000) -> MaskedRelease:
    """What the parties release of the victims; attackers train decoders of so many steps."""
    victims = derive_seed(seed, "victims")
    if not (isinstance(mechanism, Keyed) and isinstance(mechanism, HasParticipants)):
        raise UsageError(f"{mechanism.name} has no masks.")
    masks = mechanism.secrets(splits.victim, seed=victims).get("mask")
    participant = mechanism.participant(splits.attacker, seed=derive_seed(seed, "participant"))
    if masks is None or participant is None:
        raise UsageError(f"{mechanism.name} has no masks in this setting.")
    knowledge = Knowledge(
        auxiliary=splits.attacker,
        encoder=mechanism.public_encoder() if isinstance(mechanism, HasEncoder) else None,
        participant=participant,
        parties=mechanism.turns,
        seed=derive_seed(seed, "attacker"),
    )
    release = mechanism.release(splits.victim, seed=victims)
    return MaskedRelease(splits, release, masks[: mechanism.turns], knowledge, steps)


class HasMasks(HasEncoder, HasParticipants, Protocol):
    """What shares latents under masks."""

    def release(self, data: Dataset, *, seed: int | None = None) -> Release: ...


def largest_changes(mechanism: HasMasks, data: Dataset, seed: int) -> npt.NDArray[np.float64]:
    """max |ẑ − z| over the numbers of each record, (N,) (Proposition 1)."""
    encoder = mechanism.public_encoder()
    assert encoder is not None  # what shares latents has one
    latents = forward_in_batches(encoder, as_tensor(data.x)).numpy()
    moved = np.abs(mechanism.release(data, seed=derive_seed(seed, "victims")).payload - latents)
    return np.asarray(moved.reshape(len(data), -1).max(axis=1), dtype=np.float64)


def flipped(mask: FloatArray, rate: float, seed: int) -> FloatArray:
    """A mask (h,) that agrees with ``mask`` in round(rate · h) dimensions."""
    wrong = np.random.default_rng(seed).permutation(len(mask))[round(rate * len(mask)) :]
    other = mask.copy()
    other[wrong] = 1.0 - other[wrong]
    return other
