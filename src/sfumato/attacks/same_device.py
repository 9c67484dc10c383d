"""Attackers who can send records of their own through the victims' device: its secret makes their payloads, too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.attacks.base import Attack, AttributeAttack, Guess, ReconstructionAttack
from sfumato.attacks.reidentification.candidates import nearest
from sfumato.core.dataset import FloatArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release

_SUFFIX = "same-device"
_MOST = 10_000
"""Records of the attacker's own that it sends through the device."""


def through_device(knowledge: Knowledge) -> Knowledge:
    """With the victims' device for a pipeline; with one secret a record is answered in one way."""
    return replace(knowledge, query=knowledge.same_device, randomised=False)


class _ThroughDevice(Attack):
    """Another attack, trained on what the victims' device makes of the attacker's own records."""

    inner: Attack

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.inner.name}-{_SUFFIX}"

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return device_missing(knowledge) or self.inner.obstacle(through_device(knowledge))

    def guess(self, release: Release, knowledge: Knowledge) -> Guess:
        return self.inner.guess(release, through_device(knowledge))


class SameDeviceDecoder(_ThroughDevice, ReconstructionAttack):
    """``inner`` is a decoder."""


class SameDeviceProbe(_ThroughDevice, AttributeAttack):
    """``inner`` is a probe of ``label``."""


class NearestAnswer(ReconstructionAttack):
    """The attacker's own record whose payload, by the victims' device, is nearest: a look into the codebook.

    Where noise follows from the record alone, a record that the attacker holds as well is found for certain.
    """

    name = f"nearest-{_SUFFIX}"
    how = "the attacker's own record that the victims' device answers most alike"

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return device_missing(knowledge)

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        assert knowledge.same_device is not None  # obstacle() has seen to it
        own = knowledge.auxiliary.sample(_MOST, derive_seed(knowledge.seed, self.name))
        answers, payload = (each.reshape(len(each), -1) for each in (knowledge.same_device(own), release.payload))
        return np.asarray(own.x[nearest(payload, answers)])


def device_missing(knowledge: Knowledge) -> str | None:
    return "needs a device that keeps a secret" if knowledge.same_device is None else None
