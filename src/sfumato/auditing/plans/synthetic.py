"""Synthetic records: they belong to no victim, so the question is who was among the owner's records.

Members are the owner's records, on which the model was fitted, and strangers the victims.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.attacks.base import Attack
from sfumato.attacks.membership.synthetic_records import MembershipAttack
from sfumato.attacks.registry import membership_suite
from sfumato.auditing.controls import Values
from sfumato.auditing.effort import Effort
from sfumato.auditing.plans.base import Plan, Scene, Stage
from sfumato.core.dataset import Splits
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.randomness import derive_seed
from sfumato.core.release import raw_release

NO_VICTIM = "a synthetic record belongs to no victim"


class SyntheticPlan(Plan):
    """Membership, against a release of the owner's records themselves as the control."""

    def __init__(self, scene: Scene, truth: Truth) -> None:
        super().__init__(scene)
        self._truth = truth

    def attacks(self) -> list[Attack]:
        return membership_suite(tuple(self.scene.release.utility))

    def obstacle(self, attack: Attack) -> str | None:
        return None if isinstance(attack, MembershipAttack) else NO_VICTIM

    def stage(self, attack: Attack, knowledge: Knowledge) -> Stage:
        return Stage(knowledge, self.scene.release, self._truth, self.scene.shown)

    def control(self, attack: Attack, knowledge: Knowledge) -> Values:
        raw = raw_release(self.scene.splits.owner)
        return self.scene.controls.get(attack.identity, lambda: attack(raw, knowledge, self._truth).values())


def membership_stage(splits: Splits, effort: Effort, seed: int) -> tuple[Knowledge, Truth]:
    """Owner's records and as many victims, shuffled, under ids that say nothing; and which are which."""
    rng = np.random.default_rng(derive_seed(seed, "suspects"))
    few = max(1, min(effort.suspects // 2, len(splits.owner), len(splits.victim)))
    members, strangers = (part.take(rng.permutation(len(part))[:few]) for part in (splits.owner, splits.victim))
    order = rng.permutation(2 * few)
    suspects = members.joined(strangers).take(order)
    candidates = replace(suspects, ids=np.arange(2 * few).astype(np.str_))
    knowledge = Knowledge(
        auxiliary=splits.attacker, candidates=candidates, randomised=True, seed=derive_seed(seed, "attacker")
    )
    members_among = (order < few).astype(np.int64)
    return knowledge, Truth(suspects, members=members_among, rows=np.full(2 * few, -1))  # half are no victims
