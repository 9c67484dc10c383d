"""Membership attacks win where the owner's records are released, and see nothing where there is nothing to see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sfumato.attacks.base import Attack
from sfumato.attacks.membership.synthetic_records import (
    TPR,
    DensityRatio,
    MembershipAttack,
    NearestSynthetic,
    StudentLoss,
    SyntheticOrReal,
    log_density,
    nearest_distance,
)
from sfumato.attacks.registry import membership_suite
from sfumato.auditing.effort import Effort
from sfumato.auditing.plans.synthetic import membership_stage
from sfumato.core.dataset import Dataset, FloatArray, Splits
from sfumato.core.errors import RuleBroken
from sfumato.core.guarantee import empirical
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.release import Release
from sfumato.core.score import Score

ATTACKS: list[Attack] = membership_suite(("odd",))
every = pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)


def released(data: Dataset, x: FloatArray | None = None) -> Release:
    return Release("test", data.x if x is None else x, empirical("A test."), data.utility)


@pytest.fixture(scope="module")
def stage(parity: Splits) -> tuple[Knowledge, Truth]:
    return membership_stage(parity, Effort(suspects=500), seed=0)


def advantage(attack: Attack, release: Release, stage: tuple[Knowledge, Truth]) -> Score:
    return next(score for score in attack(release, *stage).scores if score.primary)


@every
def test_attack_beats_its_baseline_on_the_owners_records(
    attack: Attack, parity: Splits, stage: tuple[Knowledge, Truth]
) -> None:
    score = advantage(attack, released(parity.owner), stage)
    assert score.baseline == 0.0
    assert score.ci[0] > 0.0


def test_copies_are_found_with_certainty(parity: Splits, stage: tuple[Knowledge, Truth]) -> None:
    for attack in (NearestSynthetic(), NearestSynthetic(within=True)):
        found = {score.metric: score.value for score in attack(released(parity.owner), *stage).scores}
        assert found == {"advantage": 1.0, "auroc": 1.0, **dict.fromkeys(TPR, 1.0)}


@every
def test_attack_gets_nothing_from_a_release_that_holds_nothing(
    attack: Attack, parity: Splits, stage: tuple[Knowledge, Truth]
) -> None:
    score = advantage(attack, released(parity.owner, np.zeros_like(parity.owner.x)), stage)
    # Three standard deviations of 250 members and 250 strangers, whose classes are not equally frequent.
    assert abs(score.value) < 0.15 or score.ci[0] <= 0.0


@every
def test_attack_gets_nothing_from_other_peoples_records(
    attack: Attack, parity: Splits, stage: tuple[Knowledge, Truth]
) -> None:
    score = advantage(attack, released(parity.attacker), stage)
    assert abs(score.value) < 0.15  # three standard deviations of 250 members and 250 strangers


@every
def test_score_has_baseline_control_interval_and_size(
    attack: Attack, parity: Splits, stage: tuple[Knowledge, Truth]
) -> None:
    outcome = attack(released(parity.attacker), *stage, control={"advantage": 0.5})
    score = next(score for score in outcome.scores if score.primary)
    assert (score.metric, score.threat, score.control, score.n) == ("advantage", "membership", 0.5, 500)
    baselines = {score.metric: score.baseline for score in outcome.scores}
    assert baselines == {"advantage": 0.0, "auroc": 0.5, **{name: pytest.approx(fpr) for name, fpr in TPR.items()}}
    for each in outcome.scores:
        assert each.ci[0] <= each.value <= each.ci[1]


@every
def test_attack_is_repeatable(attack: Attack, parity: Splits, stage: tuple[Knowledge, Truth]) -> None:
    first, second = (attack(released(parity.owner), *stage).values() for _ in range(2))
    assert first == second


@every
def test_attack_without_candidates_says_so(attack: Attack, parity: Splits, stage: tuple[Knowledge, Truth]) -> None:
    knowledge, truth = stage
    with pytest.raises(RuleBroken, match="needs candidates"):
        attack(released(parity.owner), replace(knowledge, candidates=None), truth)


@every
def test_attack_refuses_auxiliary_data_with_candidates_in_it(
    attack: Attack, parity: Splits, stage: tuple[Knowledge, Truth]
) -> None:
    knowledge, truth = stage
    for part in (parity.owner, parity.victim):
        with pytest.raises(RuleBroken, match="are in the attacker's auxiliary data"):
            attack(released(parity.owner), replace(knowledge, auxiliary=part), truth)


class Cheat(MembershipAttack):
    """Asks the truth who is a member."""

    name = "cheat"

    def __init__(self, truth: Truth) -> None:
        self.truth = truth

    def suspicion(self, release: Release, candidates: Dataset, knowledge: Knowledge) -> FloatArray:
        return self.truth.members().astype(np.float32)


def test_attack_that_reads_who_is_a_member_is_caught(parity: Splits, stage: tuple[Knowledge, Truth]) -> None:
    with pytest.raises(RuleBroken, match="tried to read the victims' truth"):
        Cheat(stage[1])(released(parity.owner), *stage)


def test_half_of_the_candidates_are_members_and_nothing_tells_which(
    parity: Splits, stage: tuple[Knowledge, Truth]
) -> None:
    knowledge, truth = stage
    assert knowledge.candidates is not None
    members, suspects = truth.members(), truth.open()
    assert members.sum() * 2 == len(members) == 500
    owners = np.isin(suspects.ids, parity.owner.ids)
    np.testing.assert_array_equal(owners, members == 1)
    np.testing.assert_array_equal(knowledge.candidates.x, suspects.x)
    assert knowledge.candidates.ids.tolist() == [str(place) for place in range(500)]
    assert abs(np.corrcoef(np.arange(500), members)[0, 1]) < 0.15


def test_without_labels_no_attack_needs_them(parity: Splits, stage: tuple[Knowledge, Truth]) -> None:
    names = {attack.name for attack in membership_suite(())}
    assert names == {NearestSynthetic().name, DensityRatio.name, SyntheticOrReal.name}
    knowledge, _ = stage
    assert knowledge.candidates is not None
    bare = replace(knowledge, candidates=replace(knowledge.candidates, utility={}))
    assert StudentLoss().obstacle(bare) == "needs labels"


def test_distances_and_densities_by_hand() -> None:
    points, among = np.array([[0.0, 0.0], [1.0, 1.0]], np.float32), np.array([[3.0, 4.0], [1.0, 1.0]], np.float32)
    assert nearest_distance(points, among) == pytest.approx([np.sqrt(2.0), 0.0], abs=1e-6)
    expected = np.log((np.exp(-25 / 8) + np.exp(-2 / 8)) / 2)
    assert log_density(points, among, 2.0)[0] == pytest.approx(expected, abs=1e-6)
