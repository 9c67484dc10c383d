"""What a partly right mask is worth: the error of a decoder trained under a mask that overlaps the victim's (§6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sfumato.attacks.base import Measured, measure_reconstruction
from sfumato.attacks.masks.mask_attacks import KnownMask, SearchMask
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
    """The attacker's mask agrees with the victim's in this share of the dimensions."""

    rate: float
    error: Measured


def overlap_errors(
    mechanism: Mechanism, splits: Splits, rates: Sequence[float], *, seed: int, steps: int = 2000
) -> list[Overlap]:
    """The mean squared error on the victims, for each overlapping rate, by a decoder of so many steps.

    One party, so one mask.
    """
    victims = derive_seed(seed, "victims")
    if not (isinstance(mechanism, Keyed) and isinstance(mechanism, HasParticipants)):
        raise UsageError(f"{mechanism.name} has no masks.")
    masks = mechanism.secrets(splits.victim, seed=victims).get("mask")
    participant = mechanism.participant(splits.attacker, seed=derive_seed(seed, "participant"))
    if masks is None or participant is None:
        raise UsageError(f"{mechanism.name} has no masks in this setting.")
    release = mechanism.release(splits.victim, seed=victims)
    found = []
    for rate in rates:
        guessed = flipped(masks[0], rate, derive_seed(seed, "overlap", rate))
        knowledge = Knowledge(
            auxiliary=splits.attacker,
            encoder=mechanism.public_encoder() if isinstance(mechanism, HasEncoder) else None,
            participant=participant,
            granted={"mask": guessed[None]},
            seed=derive_seed(seed, "attacker"),
        )
        guess = KnownMask(epochs=1, steps=steps).guess(release, knowledge)
        error = next(m for m in measure_reconstruction(splits.victim, guess) if m.metric == "mse")
        found.append(Overlap(rate, error))
    return found


class HasMasks(HasEncoder, HasParticipants, Protocol):
    """What shares latents under masks."""

    def release(self, data: Dataset, *, seed: int | None = None) -> Release: ...


def search_error(mechanism: HasMasks, splits: Splits, seed: int) -> Measured:
    """The brute-force search of §6.1 on what ``overlap_errors`` attacks with masks of a known overlap."""
    knowledge = Knowledge(
        auxiliary=splits.attacker,
        encoder=mechanism.public_encoder(),
        participant=mechanism.participant(splits.attacker, seed=derive_seed(seed, "participant")),
        seed=derive_seed(seed, "attacker"),
    )
    release = mechanism.release(splits.victim, seed=derive_seed(seed, "victims"))
    guess = SearchMask(epochs=1, steps=2000).guess(release, knowledge)
    return next(m for m in measure_reconstruction(splits.victim, guess) if m.metric == "mse")


def largest_change(mechanism: HasMasks, data: Dataset, seed: int) -> float:
    """max |ẑ − z| over all numbers of all records (Proposition 1)."""
    encoder = mechanism.public_encoder()
    assert encoder is not None  # what shares latents has one
    latents = forward_in_batches(encoder, as_tensor(data.x)).numpy()
    return float(np.abs(mechanism.release(data, seed=derive_seed(seed, "victims")).payload - latents).max())


def flipped(mask: FloatArray, rate: float, seed: int) -> FloatArray:
    """A mask (h,) that agrees with ``mask`` in round(rate · h) dimensions."""
    wrong = np.random.default_rng(seed).permutation(len(mask))[round(rate * len(mask)) :]
    other = mask.copy()
    other[wrong] = 1.0 - other[wrong]
    return other
