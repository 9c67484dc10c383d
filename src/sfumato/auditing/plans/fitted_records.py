"""What was fitted to the owner's records and is public: does it tell who was among them, and what left?

Members are the owner's records, strangers the victims; the control is a model that has learnt the members by heart.
"""

from __future__ import annotations

from dataclasses import replace

from sfumato.attacks.base import Attack
from sfumato.attacks.membership.overfitted_classifier import fit_lookup, fit_memoriser
from sfumato.attacks.membership.training_records import TrainingMembership
from sfumato.attacks.reconstruction.own_decoder import OwnDecoder
from sfumato.attacks.registry import training_suite
from sfumato.auditing.controls import Values
from sfumato.auditing.plans.base import Plan, Scene, Stage
from sfumato.auditing.plans.synthetic import membership_stage
from sfumato.core.dataset import Dataset
from sfumato.core.knowledge import Knowledge, Model, Refit


class TrainingPlan(Plan):
    """``model`` is what is public of the mechanism, ``refit`` fits others like it; None where that costs too much."""

    def __init__(self, scene: Scene, model: Model, refit: Refit | None) -> None:
        super().__init__(scene)
        self._model, self._refit = model, refit

    def attacks(self) -> list[Attack]:
        effort = self.scene.effort
        own: list[Attack] = [] if self._model.decode is None else [OwnDecoder()]
        return [*own, *training_suite(shadows=effort.shadows, records=effort.shadow_records)]

    def stage(self, attack: Attack, knowledge: Knowledge) -> Stage | None:
        scene = self.scene
        if isinstance(attack, OwnDecoder):
            return scene.lined_up(attack, replace(knowledge, model=self._model), scene.release, scene.truth)
        return self._staged(knowledge, self._model, self._refit) if isinstance(attack, TrainingMembership) else None

    def control(self, attack: Attack, knowledge: Knowledge) -> Values | None:
        if not isinstance(attack, TrainingMembership) or not self.scene.splits.owner.utility:
            return None
        bare = replace(knowledge, query=lambda data: data.x.copy(), encoder=None, randomised=False)
        owner, seed = self.scene.splits.owner, bare.seed

        def measure() -> Values:
            stage = self._staged(bare, by_heart(owner, seed), by_heart)
            return attack(stage.release, stage.knowledge, stage.truth).values()

        return self.scene.controls.get(attack.identity, measure)

    def _staged(self, knowledge: Knowledge, model: Model, refit: Refit | None) -> Stage:
        """Without the victims' release: whose payload is there is a stranger."""
        scene = self.scene
        suspects, truth = membership_stage(scene.splits, scene.effort, scene.seed)
        known = replace(knowledge, candidates=suspects.candidates, model=model, refit=refit)
        nothing = replace(scene.release, payload=scene.release.payload[:0], utility={})
        return Stage(known, nothing, truth, scene.shown[:0])


def by_heart(data: Dataset, seed: int) -> Model:
    """A classifier of raw records, or a regression, that has learnt them by heart."""
    label = next(iter(data.utility))
    flat = data.x.reshape(len(data), -1)
    if label in data.schema.numbers:
        fitted = fit_lookup(flat, data.numbers(label))
    else:
        fitted = fit_memoriser(flat, data.utility[label], len(data.schema.classes(label)), seed)
    return Model(lambda some: some.x.reshape(len(some), -1), predict=fitted)
