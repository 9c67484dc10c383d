"""Representations that parties share under masks: the attacker may be one of them."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from torch import nn

from sfumato.attacks.base import Attack
from sfumato.attacks.masks.substitute_decoders import CleanDecoder
from sfumato.attacks.registry import shared_suite
from sfumato.auditing.controls import Values
from sfumato.auditing.plans.base import Plan, Scene
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.fresh_seeds import asking
from sfumato.core.knowledge import Knowledge, Participant
from sfumato.core.threats import RECONSTRUCTION
from sfumato.nets.training_loop import as_tensor, forward_in_batches


class SharedPlan(Plan):
    """``participant`` is the attacker as a party of its own; None where there are no masks to choose."""

    def __init__(self, scene: Scene, participant: Participant | None, parties: int) -> None:
        super().__init__(scene)
        self._participant, self._parties = participant, parties

    def attacks(self) -> list[Attack]:
        return shared_suite(**self.inverse_effort)

    def grant(self, knowledge: Knowledge) -> Knowledge:
        return replace(knowledge, participant=self._participant, parties=self._parties)

    def control(self, attack: Attack, knowledge: Knowledge) -> Values | None:
        """Against the parties' latents without any noise; whatever the attack, they are read by the same decoder."""
        encoder = knowledge.encoder
        if encoder is None or knowledge.participant is None or attack.threat != RECONSTRUCTION:
            return None
        bare = replace(
            knowledge,
            query=lambda data: latents(encoder, data),
            participant=lambda data, _: latents(encoder, data),
            granted={name: self.scene.secrets[name] for name in attack.grants},
        )
        if attack.obstacle(bare) is not None:
            return None
        release = replace(self.scene.release, payload=latents(encoder, self.scene.splits.victim))
        reader = next(each for each in self.attacks() if isinstance(each, CleanDecoder))
        digest = hashlib.sha256(release.payload.tobytes()).hexdigest()  # others share the parties' records, not these

        def measure() -> Values:
            with asking("clean latents"):  # by whoever comes first
                return reader(release, bare, self.scene.truth).values()

        return self.scene.controls.get(f"clean latents {digest}: {reader!r}", measure)

    def encoder_control(self, attack: Attack, knowledge: Knowledge) -> Values | None:
        """Against clean latents, too, for attacks that read any payload."""
        encoder = knowledge.encoder
        if encoder is None or not attack.yardstick:
            return self.control(attack, knowledge)
        bare = replace(knowledge, query=lambda data: latents(encoder, data), randomised=False)
        release = replace(self.scene.release, payload=latents(encoder, self.scene.splits.victim))
        return attack(release, bare, self.scene.truth).values()


def latents(encoder: nn.Module, data: Dataset) -> FloatArray:
    """What an encoder makes of records, without any noise."""
    return forward_in_batches(encoder, as_tensor(data.x)).numpy()
