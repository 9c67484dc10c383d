"""What every attack promises: it wins where there is no defence, and it never sees the truth."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from sfumato.attacks.base import Attack, Outcome
from sfumato.auditing.controls import Controls, Values
from sfumato.auditing.effort import SMOKE, Effort
from sfumato.auditing.staging import plans_for, scene_of
from sfumato.auditing.trials import trials
from sfumato.core.dataset import Splits
from sfumato.core.errors import RuleBroken
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.release import Release
from sfumato.core.score import Score
from sfumato.core.threats import threat
from sfumato.mechanisms.base import Mechanism
from sfumato.testing.mechanisms import parity_digits
from sfumato.testing.second_device import second_device

TINY = replace(
    SMOKE,
    attack_epochs=1,
    attack_steps=20,
    inverted=8,
    inversion_steps=4,
    task_epochs=1,
    task_steps=30,
    candidates=30,
    averages=(2,),
    suspects=200,
    draws=4000,
    canaries=12,
    student_width=4,
)
"""The least effort that still runs every attack: for tests of what surrounds them, not of how strong they are."""


class AuditStage:
    """The victims of one mechanism, as an audit stages them for single attacks."""

    def __init__(
        self, mechanism: Mechanism, splits: Splits, effort: Effort = Effort(candidates=100, inverted=32), seed: int = 0
    ) -> None:
        self.mechanism, self.splits = mechanism, splits
        self.scene = scene_of(mechanism, splits, effort, seed, Controls())
        self.plans = plans_for(mechanism, self.scene)

    def stage(self, attack: Attack) -> tuple[Knowledge, Release, Truth]:
        """What the attack is given."""
        found = next(trials(self.plans, [attack])).stage
        return found.knowledge, found.release, found.truth

    def control(self, attack: Attack) -> Values | None:
        """What it gets where nothing is defended."""
        return next(trials(self.plans, [attack])).control()

    def score(self, attack: Attack) -> Score:
        """Its ranking score."""
        knowledge, release, truth = self.stage(attack)
        return primary(attack(release, knowledge, truth).scores)


_OUTCOMES: dict[tuple[str, int], tuple[Mechanism, Outcome]] = {}


def outcome(attack: Attack, mechanism: Mechanism, splits: Splits) -> Outcome:
    """What the attack achieves, beside a control of 0.25; run once for all tests that look at the same."""
    key = attack.identity, id(mechanism)
    if key not in _OUTCOMES:
        knowledge, release, truth = AuditStage(mechanism, splits).stage(attack)
        found = attack(release, knowledge, truth, control=dict.fromkeys(_ranking(attack), 0.25))
        _OUTCOMES[key] = mechanism, found  # held, or another could get its address
    return _OUTCOMES[key][1]


def primary(scores: Iterable[Score]) -> Score:
    """The score by which attacks are ranked."""
    return next(score for score in scores if score.primary)


def wins(score: Score) -> bool:
    """Whether the interval lies wholly on the attacker's side of the baseline."""
    assert score.baseline is not None
    low, high = score.ci
    return high < score.baseline if score.better_for_owner == "higher" else low > score.baseline


def _ranking(attack: Attack) -> tuple[str, str]:
    """The metrics that rank attacks of its threat, on classes and on a number."""
    known = threat(attack.threat)
    return known.metric, known.number_metric


class AttackConformance:
    """A subclass gives three fixtures.

    attack      the attack
    undefended  a fitted mechanism against which it must win
    plain       a fitted mechanism that it can be run against, for the other tests; without it ``undefended``
    """

    @pytest.fixture
    def splits(self) -> Splits:
        return parity_digits()

    @pytest.fixture
    def plain(self, undefended: Mechanism) -> Mechanism:
        return undefended

    def test_attack_beats_its_baseline_on_an_undefended_release(
        self, attack: Attack, undefended: Mechanism, splits: Splits
    ) -> None:
        assert wins(primary(outcome(attack, undefended, splits).scores))

    def test_attack_gets_nothing_from_a_release_that_holds_nothing(
        self, attack: Attack, plain: Mechanism, splits: Splits
    ) -> None:
        knowledge, release, truth = AuditStage(plain, splits).stage(attack)
        blank = replace(release, payload=np.zeros_like(release.payload))
        blind = replace(knowledge, query=lambda data: np.zeros((len(data), *release.payload.shape[1:]), np.float32))
        score = primary(attack(blank, blind, truth).scores)
        assert score.baseline is not None
        margin = 0.05 * score.baseline if score.metric == "mse" else 0.08
        assert abs(score.value - score.baseline) <= margin or not wins(score)

    def test_score_has_baseline_control_interval_and_the_metric_of_its_threat(
        self, attack: Attack, plain: Mechanism, splits: Splits
    ) -> None:
        found = outcome(attack, plain, splits)
        score = primary(found.scores)
        known = threat(attack.threat)
        assert known.title != known.name and known.baseline, "register the threat: sfumato.core.threats.register"
        assert score.metric == _ranking(attack)[score.target in splits.schema.numbers]
        assert score.better_for_owner == known.better_for_owner
        assert score.control == 0.25
        assert score.baseline is not None and score.ci[0] <= score.value <= score.ci[1]
        assert score.n == len(AuditStage(plain, splits).stage(attack)[1])
        assert sum(s.primary for s in found.scores) == 1

    def test_attack_is_repeatable(self, attack: Attack, plain: Mechanism, splits: Splits) -> None:
        first = primary(outcome(attack, plain, splits).scores)
        assert first.value == AuditStage(plain, splits).score(attack).value

    def test_attack_guesses_the_same_on_another_device(self, attack: Attack, plain: Mechanism, splits: Splits) -> None:
        twin = copy.deepcopy(attack)  # what an attack remembers stays where it learnt it
        near = primary(outcome(attack, plain, splits).scores)
        with second_device():
            far = AuditStage(plain, splits).score(twin)
        assert near.ci[0] <= far.value <= near.ci[1]

    def test_attack_refuses_auxiliary_data_with_victims_in_it(
        self, attack: Attack, plain: Mechanism, splits: Splits
    ) -> None:
        knowledge, release, truth = AuditStage(plain, splits).stage(attack)
        with pytest.raises(RuleBroken, match="victims are in the attacker's auxiliary data"):
            attack(release, replace(knowledge, auxiliary=splits.victim), truth)
