"""A device that keeps a secret from one release to the next: somebody else may use the same one."""

from __future__ import annotations

from dataclasses import replace

from sfumato.attacks.base import Attack
from sfumato.attacks.registry import device_suite
from sfumato.auditing.controls import Values
from sfumato.auditing.plans.base import Plan, Scene
from sfumato.core.knowledge import Knowledge, Query
from sfumato.core.release import raw_release


class DevicePlan(Plan):
    """``device`` is the victims' own, for records of the attacker's."""

    def __init__(self, scene: Scene, device: Query) -> None:
        super().__init__(scene)
        self._device = device

    def attacks(self) -> list[Attack]:
        return device_suite(self.scene.splits.schema, **self.inverse_effort)

    def grant(self, knowledge: Knowledge) -> Knowledge:
        return replace(knowledge, same_device=self._device)

    def control(self, attack: Attack, knowledge: Knowledge) -> Values | None:
        """Against the raw records, which every device releases alike."""
        scene = self.scene
        bare = replace(scene.knowledge, same_device=lambda data: data.x.copy(), encoder=None, randomised=False)
        if attack.obstacle(scene.knowledge) is None or attack.obstacle(bare) is not None:
            return None  # it does without the device, or cannot do with it
        release = raw_release(scene.splits.victim)
        return scene.controls.get(attack.identity, lambda: attack(release, bare, scene.truth).values())
