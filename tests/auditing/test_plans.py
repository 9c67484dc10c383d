"""Plans compose: a mechanism that is both keyed and shared is attacked as both, and loses no secret."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sfumato.attacks.base import Attack
from sfumato.attacks.masks.mask_attacks import MaskBySpread
from sfumato.attacks.registry import features_suite, rotations_suite, shared_suite
from sfumato.attacks.rotations.row_guesses import RowsByKey
from sfumato.auditing.controls import Controls
from sfumato.auditing.effort import Effort
from sfumato.auditing.plans.base import Scene
from sfumato.auditing.plans.features import FeaturesPlan
from sfumato.auditing.trials import carry_out, trials
from sfumato.core.dataset import Dataset, FloatArray, Splits
from sfumato.core.knowledge import Knowledge, Participant
from sfumato.core.release import raw_release
from sfumato.core.score import each_record
from sfumato.core.traits import Traits
from sfumato.mechanisms.base import Mechanism
from sfumato.testing import AuditStage
from turned import Turned


class TurnedAndShared(Turned):
    """Rotated messages of several parties, each with a mask of its own."""

    name = "turned-and-shared"

    @property
    def traits(self) -> Traits:
        return replace(super().traits, parties=2)

    def secrets(self, data: Dataset, *, seed: int) -> dict[str, FloatArray]:
        return {**super().secrets(data, seed=seed), "mask": np.ones((len(data), 4), dtype=np.float32)}

    turns = 2

    def participant(self, data: Dataset, *, seed: int) -> Participant:
        return lambda own, masks: masks


@pytest.fixture(scope="module")
def stage(digits: Splits) -> AuditStage:
    return AuditStage(TurnedAndShared().fit(digits.owner), digits, Effort(candidates=50, repeats=2))


def test_keyed_and_shared_mechanism_gets_both_suites(stage: AuditStage) -> None:
    schema = stage.splits.schema
    wanted = [*features_suite(schema), *rotations_suite(schema, ("digit",)), *shared_suite()]
    found = [trial.attack.name for trial in trials(stage.plans)]
    assert found[: len(wanted)] == [attack.name for attack in wanted]  # plugins of this machine come after


@pytest.mark.parametrize("attack", [RowsByKey(), MaskBySpread()], ids=lambda attack: attack.name)
def test_every_attack_has_what_either_plan_grants_and_both_secrets(attack: Attack, stage: AuditStage) -> None:
    knowledge, _, truth = stage.stage(attack)
    assert knowledge.own_device is not None and knowledge.participant is not None and knowledge.parties == 2
    assert set(knowledge.unknown) == {"key", "mask"}
    assert truth.secret("key").shape[1:] == (2, 2) and truth.secret("mask").shape[1:] == (4,)


def test_a_known_secret_needs_no_measuring(stage: AuditStage) -> None:
    assert stage.control(MaskBySpread()) == {"overlap": 1.0}


def test_a_plan_needs_no_mechanism(parity: Splits) -> None:
    """A release that somebody else made, as payloads alone: what needs queries is listed, not run."""
    release = raw_release(parity.victim)
    knowledge = Knowledge(auxiliary=parity.attacker, seed=1)
    shown = np.arange(4)
    scene = Scene("theirs", parity, Effort(candidates=50), 0, release, knowledge, shown, controls=Controls())
    found = carry_out(trials([FeaturesPlan(scene)]), "theirs", lambda _: None)
    assert {score.attack for score in found.scores} == {"label-only", "label-mean"}
    assert {reason for _, reason in found.skipped} == {"needs query access to the protected pipeline"}
    callable_ = replace(scene, knowledge=replace(knowledge, query=lambda data: data.x.copy()))
    attack = next(each for each in FeaturesPlan(callable_).attacks() if each.threat == "reidentification")
    found = carry_out(trials([FeaturesPlan(callable_)], [attack]), "theirs", lambda _: None)
    assert found.scores[0].value == 1.0 and found.scores[0].control == 1.0


def in_order(part: Dataset) -> Dataset:
    return part.take(np.argsort(part.utility["odd"], kind="stable"))


@pytest.mark.parametrize("name", ["inverse-encoder", "reid-query"])
def test_an_attack_that_sees_some_victims_sees_all_classes_of_a_sorted_file(
    name: str, fitted: dict[str, Mechanism], parity: Splits
) -> None:
    """Records that stand at the beginning of a file are no sample of it."""
    ordered = Splits(parity.owner, in_order(parity.attacker), in_order(parity.victim))
    stage = AuditStage(fitted["none"], ordered, Effort(candidates=60, inverted=60))
    attack = next(attack for attack in features_suite(parity.schema) if attack.name == name)
    _, release, truth = stage.stage(attack)
    assert (release.payload.reshape(60, -1) == truth.open().x.reshape(60, -1)).all()
    assert 0.3 < truth.open().utility["odd"].mean() < 0.7


def test_values_of_some_victims_are_stored_with_their_places(fitted: dict[str, Mechanism], parity: Splits) -> None:
    """The victims of a gallery come first, so the order is not that of the file, and the n-th value not the n-th's."""
    stage = AuditStage(fitted["none"], parity, Effort(candidates=60, inverted=30))
    attack = next(attack for attack in features_suite(parity.schema) if attack.name == "inverse-encoder")
    knowledge, release, truth = stage.stage(attack)
    outcome = attack(release, knowledge, truth)
    each = each_record(outcome.scores)
    rows = each["inverse-encoder||mse|row"]
    assert len(set(rows.tolist())) == 30
    error = np.square(stage.splits.victim.x[rows] - outcome.guess).mean(axis=(1, 2, 3))
    assert each["inverse-encoder||mse"] == pytest.approx(error, abs=1e-6)
    whole = next(attack for attack in features_suite(parity.schema) if attack.threat == "attribute")
    assert stage.stage(whole)[2].rows is None  # it sees all of them
