"""Any payload that belongs to a record: the attacks that ask nothing of the mechanism but the release."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from sfumato.attacks.base import Attack
from sfumato.attacks.registry import features_suite
from sfumato.auditing.controls import Values
from sfumato.auditing.plans.base import Plan, Stage
from sfumato.core.knowledge import Knowledge
from sfumato.core.randomness import derive_seed
from sfumato.core.release import raw_release


class FeaturesPlan(Plan):
    """Reconstruction, attribute inference and re-identification; it stages whatever no other plan does."""

    def attacks(self) -> list[Attack]:
        effort, schema = self.scene.effort, self.scene.splits.schema
        return features_suite(
            schema,
            **self.inverse_effort,
            renewals=effort.attack_renewals,
            search=effort.inversion_steps,
            starts=effort.inversion_starts,
            labels_leave=bool(self.scene.release.utility),
            pictures=schema.kind == "image" and self.scene.release.payload.shape[1:] == schema.shape,
            second=self.scene.second is not None,
            public=self.scene.public is not None,
        )

    @cached_property
    def _bare(self) -> Knowledge:
        """What an attacker knows of a pipeline without a defence."""
        return replace(self.scene.knowledge, query=lambda data: data.x.copy(), encoder=None, randomised=False)

    def stage(self, attack: Attack, knowledge: Knowledge) -> Stage:
        scene = self.scene
        if attack.wants_repeats and scene.repeat is not None:
            seed = derive_seed(scene.seed, "victims")
            repeats = scene.repeat(scene.splits.victim, scene.effort.repeats, seed)
            knowledge = replace(knowledge, repeats=repeats)
        known = {name: scene.secrets[name] for name in attack.grants if name in scene.secrets}
        return scene.lined_up(attack, replace(knowledge, granted=known), scene.release, scene.truth)

    def control(self, attack: Attack, knowledge: Knowledge) -> Values | None:
        """Against the raw records, which are the same for every mechanism of a comparison; None where it needs more."""
        scene = self.scene
        stage = scene.lined_up(attack, self._bare, raw_release(scene.splits.victim), scene.truth)
        if attack.obstacle(stage.knowledge) is not None:
            return None
        return scene.controls.get(attack.identity, lambda: attack(stage.release, stage.knowledge, stage.truth).values())
