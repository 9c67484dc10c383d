"""Counting attacks: they win wherever payloads are a codebook, and hardened ``ars`` is none."""

from __future__ import annotations

import numpy as np
import pytest
from few_records import ByContent, few_records

from sfumato.attacks.base import Attack
from sfumato.attacks.reconstruction.counting import CodebookAttack, CountingAttack
from sfumato.attacks.registry import features_suite
from sfumato.core.dataset import Splits
from sfumato.core.metrics import records_right
from sfumato.core.schema import Column
from sfumato.core.score import Score
from sfumato.mechanisms import mechanism_class
from sfumato.mechanisms.ars.mechanism import ARS
from sfumato.mechanisms.base import Mechanism
from sfumato.testing import AttackConformance, AuditStage
from sfumato.testing.attacks import wins

QUICK = {"latent": 16, "epochs": 4, "batch": 64}
ATTACKS = (CountingAttack(), CodebookAttack())


@pytest.fixture(scope="module")
def few() -> Splits:
    return few_records()


@pytest.fixture(scope="module")
def none(few: Splits) -> Mechanism:
    return mechanism_class("none")().fit(few.owner)


@pytest.fixture(scope="module")
def dnn(few: Splits) -> Mechanism:
    return mechanism_class("dnn")().set_params(epochs=1).fit(few.owner)


class TestEveryCountingAttack(AttackConformance):
    @pytest.fixture
    def splits(self, few: Splits) -> Splits:
        return few

    @pytest.fixture(params=ATTACKS, ids=lambda attack: attack.name)
    def attack(self, request: pytest.FixtureRequest) -> Attack:
        found: Attack = request.param
        return found

    @pytest.fixture
    def undefended(self, none: Mechanism) -> Mechanism:
        return none

    @pytest.fixture
    def plain(self, dnn: Mechanism) -> Mechanism:
        return dnn


def whole_records(attack: Attack, mechanism: Mechanism, splits: Splits) -> Score:
    knowledge, release, truth = AuditStage(mechanism, splits).stage(attack)
    return next(score for score in attack(release, knowledge, truth).scores if score.metric == "whole-record")


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_features_of_few_records_are_a_codebook(attack: Attack, dnn: Mechanism, few: Splits) -> None:
    score = whole_records(attack, dnn, few)
    assert wins(score) and score.value > 0.9


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_noise_by_content_is_counted_and_noise_by_copy_is_not(epsilon: float, few: Splits) -> None:
    new = ARS(epsilon=epsilon, **QUICK).fit(few.owner)  # type: ignore[arg-type]
    old = ByContent(epsilon=epsilon, **QUICK).fit(few.owner)  # type: ignore[arg-type]
    counted = whole_records(CountingAttack(), old, few)
    assert wins(counted) and counted.value > 0.9
    assert whole_records(CodebookAttack(), old, few).value > 0.9
    score = whole_records(CountingAttack(), new, few)
    assert score.value == score.baseline
    read = whole_records(CodebookAttack(), new, few)
    assert read.value < (0.5 if epsilon == 10.0 else 0.9)  # what a payload says for itself, without any counting


def test_slightly_noisy_payloads_are_grouped_by_nearness(few: Splits) -> None:
    noisy = mechanism_class("noisy")().set_params(noise=0.02, epochs=1).fit(few.owner)
    assert whole_records(CountingAttack(), noisy, few).value > 0.9


def test_records_that_hardly_repeat_are_not_counted(parity: Splits, fitted: dict[str, Mechanism]) -> None:
    knowledge, _, _ = AuditStage(fitted["dnn"], parity).stage(CountingAttack())
    assert "needs records that repeat" in str(CountingAttack().obstacle(knowledge))


def test_every_mechanism_is_counted(few: Splits) -> None:
    assert {"counting", "codebook"} <= {attack.name for attack in features_suite(few.schema)}


def test_baseline_of_whole_records_is_the_most_frequent_one(none: Mechanism, few: Splits) -> None:
    score = whole_records(CountingAttack(), none, few)
    _, counts = np.unique(few.victim.x, axis=0, return_counts=True)
    assert score.baseline == counts.max() / len(few.victim)


def test_whole_record_needs_every_column() -> None:
    columns = (
        Column("job", "categorical", ("a", "b")),
        Column("age", "numeric", low=0.0, high=100.0, integer=True),
        Column("weight", "numeric", nullable=True),
    )
    truth = np.tile(np.array([[1, 0, 0.30, 0.5, 0]], np.float32), (5, 1))
    guess = truth.copy()
    guess[0] = [0.6, 0.4, 0.304, 0.504, 0.1]
    guess[1, :2] = [0.4, 0.6]
    guess[2, 2] = 0.306
    guess[3, 3] = 0.51
    guess[4, 4] = 1.0
    assert records_right(truth, guess, columns).tolist() == [1, 0, 0, 0, 0]
