"""Who was among the records that a mechanism was fitted to: found where they were learnt by heart, and only there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sfumato.attacks.base import Attack
from sfumato.attacks.membership.training_records import HardRecords, ShadowModels, halves, log_ratio
from sfumato.attacks.registry import training_suite
from sfumato.auditing.effort import SMOKE, Effort
from sfumato.auditing.staging import plans_for, scene_of
from sfumato.core.dataset import Dataset, Splits
from sfumato.core.errors import RuleBroken
from sfumato.core.knowledge import Model
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.baselines.plain_features import DNN
from sfumato.mechanisms.baselines.raw_records import Undefended
from sfumato.testing import AuditStage, wins

ATTACKS: list[Attack] = training_suite(shadows=2)
EFFORT = Effort(shadow_passes=100)
every = pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)


def _coins(data: Dataset, seed: int) -> Dataset:
    """120 pictures whose label is a coin toss: whoever knows it knows the picture."""
    few = data.take(slice(0, 120))
    coins = np.random.default_rng(seed).integers(0, 2, len(few))
    schema = replace(few.schema, utility={"odd": ("no", "yes")})
    return replace(few, schema=schema, utility={"odd": coins})


@pytest.fixture(scope="module")
def coins(parity: Splits) -> Splits:
    return Splits(*(_coins(part, seed) for seed, part in enumerate((parity.owner, parity.attacker, parity.victim))))


@pytest.fixture(scope="module", params=[Undefended, DNN], ids=lambda cls: cls.name)
def by_heart(request: pytest.FixtureRequest, coins: Splits) -> AuditStage:
    return AuditStage(request.param(epochs=25, batch=32).fit(coins.owner), coins, EFFORT)


@every
def test_attack_finds_the_records_that_were_learnt_by_heart(attack: Attack, by_heart: AuditStage) -> None:
    knowledge, release, truth = by_heart.stage(attack)
    scores = {score.metric: score for score in attack(release, knowledge, truth).scores}
    assert scores["advantage"].value > 0.2
    assert wins(scores["advantage"])
    assert {"tpr-at-1-fpr", "tpr-at-0.1-fpr"} <= set(scores)


@every
def test_attack_gets_nothing_from_a_model_that_knows_nobody(attack: Attack, coins: Splits) -> None:
    elsewhere = _coins(replace(coins.owner, x=coins.owner.x[:, :, ::-1, ::-1].copy()), 7)  # upside down: other records
    assert not wins(AuditStage(DNN(epochs=25, batch=32).fit(elsewhere), coins, EFFORT).score(attack))


def test_attacks_never_see_the_release_of_strangers(by_heart: AuditStage) -> None:
    for attack in ATTACKS:
        knowledge, release, truth = by_heart.stage(attack)
        assert len(release) == 0
        assert knowledge.candidates is not None
        assert truth.members().sum() * 2 == len(knowledge.candidates)


def test_fit_that_costs_too_much_is_skipped_with_the_reason(fitted: dict[str, Mechanism], parity: Splits) -> None:
    stage = AuditStage(fitted["dnn"], parity, SMOKE)
    reason = ShadowModels().obstacle(stage.stage(ShadowModels())[0])
    assert reason == "needs shadow models, which cost too much at this effort"


def test_public_encoder_alone_is_enough_for_one_attack(by_heart: AuditStage) -> None:
    knowledge, release, truth = by_heart.stage(HardRecords())
    assert knowledge.model is not None
    bare = replace(knowledge, model=Model(knowledge.model.query))
    assert HardRecords()(release, bare, truth).scores[0].n == len(truth.members())
    assert "needs a public decoder or classifier" in str(ShadowModels().obstacle(bare))
    with pytest.raises(RuleBroken, match="needs a public encoder"):
        HardRecords()(release, replace(knowledge, model=None), truth)


def test_control_is_a_classifier_that_knows_the_owners_records_by_heart(by_heart: AuditStage) -> None:
    control = by_heart.control(ShadowModels(shadows=2))
    assert control is not None and control["advantage"] > 0.5


def test_every_mechanism_that_fits_is_asked_about_its_records(fitted: dict[str, Mechanism], parity: Splits) -> None:
    scene = scene_of(fitted["dnn"], parity, SMOKE, 0, AuditStage(fitted["dnn"], parity).scene.controls)
    names = {attack.name for plan in plans_for(fitted["dnn"], scene) for attack in plan.attacks()}
    assert {"member-hardness", "member-shadows"} <= names


def test_each_record_is_in_half_of_the_shadow_models() -> None:
    inside = halves(11, 4, 0)
    assert inside.sum(axis=0).tolist() == [2] * 11


def test_log_ratio_by_hand() -> None:
    inside = np.array([[True], [True], [False], [False]])
    seen = np.array([[3.0], [5.0], [0.0], [2.0]])  # in: 4, out: 1, variance (1 + 1 + 1 + 1)/2
    assert log_ratio(np.array([4.0]), seen, inside) == pytest.approx([3.0 * (4.0 - 2.5) / 2.0])
