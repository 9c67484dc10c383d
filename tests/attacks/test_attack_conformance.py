"""What every attack promises: it wins where there is no defence, and it never sees the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sfumato.attacks import suite
from sfumato.attacks.attribute.probes import KINDS, AttributeProbe
from sfumato.attacks.base import Attack, ReconstructionAttack
from sfumato.attacks.reconstruction.inverse_network import InverseNetwork
from sfumato.attacks.reidentification.candidates import ReidentifyByDecoding, ReidentifyByEncoder, ReidentifyByQuery
from sfumato.auditing.auditor import _Scene
from sfumato.auditing.effort import Effort
from sfumato.core.dataset import FloatArray, Splits
from sfumato.core.errors import RuleBroken
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.release import Release
from sfumato.core.score import Score
from sfumato.mechanisms.base import Mechanism

residual = InverseNetwork(decoder="residual", epochs=2, width=16, fewest_steps=100)
ATTACKS: list[Attack] = [
    InverseNetwork(decoder="mirror", epochs=2, fewest_steps=150),
    residual,
    *(AttributeProbe(label="ge5", kind=kind) for kind in KINDS),
    ReidentifyByDecoding(inverse=residual),
    ReidentifyByEncoder(),
    ReidentifyByQuery(),
]
every = pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)


def scene(mechanism: Mechanism, parity: Splits) -> _Scene:
    return _Scene(mechanism, parity, Effort(candidates=100), seed=0)


def primary(scores: tuple[Score, ...]) -> Score:
    return next(score for score in scores if score.primary)


def wins(score: Score) -> bool:
    """The interval lies wholly on the attacker's side of the baseline."""
    assert score.baseline is not None
    low, high = score.ci
    return high < score.baseline if score.better_for_owner == "higher" else low > score.baseline


@every
def test_attack_beats_its_baseline_on_an_undefended_release(
    attack: Attack, fitted: dict[str, Mechanism], parity: Splits
) -> None:
    # raw records have no encoder to mirror: there the undefended release is the plain feature
    name = "dnn" if attack.name == "inverse-mirror" else "none"
    knowledge, release, truth = scene(fitted[name], parity).stage(attack)
    assert wins(primary(attack(release, knowledge, truth).scores))


@every
def test_attack_gets_nothing_from_a_release_that_holds_nothing(
    attack: Attack, fitted: dict[str, Mechanism], parity: Splits
) -> None:
    knowledge, release, truth = scene(fitted["dnn"], parity).stage(attack)
    blank = replace(release, payload=np.zeros_like(release.payload))
    blind = replace(knowledge, query=lambda data: np.zeros((len(data), *release.payload.shape[1:]), np.float32))
    score = primary(attack(blank, blind, truth).scores)
    assert score.baseline is not None
    margin = 0.05 * score.baseline if score.metric == "mse" else 0.08
    assert abs(score.value - score.baseline) <= margin or not wins(score)


@every
def test_score_has_baseline_control_interval_and_size(
    attack: Attack, fitted: dict[str, Mechanism], parity: Splits
) -> None:
    knowledge, release, truth = scene(fitted["dnn"], parity).stage(attack)
    outcome = attack(release, knowledge, truth, control={"mse": 0.5, "rate": 0.5, "advantage": 0.25})
    score = primary(outcome.scores)
    assert score.control in (0.5, 0.25)
    assert score.baseline is not None and score.ci[0] <= score.value <= score.ci[1]
    assert score.n == len(release)
    assert sum(s.primary for s in outcome.scores) == 1


@every
def test_attack_is_repeatable(attack: Attack, fitted: dict[str, Mechanism], parity: Splits) -> None:
    name = "dnn" if attack.name == "inverse-mirror" else "noisy"
    runs = [scene(fitted[name], parity).stage(attack) for _ in range(2)]
    first, second = (attack(release, knowledge, truth).values() for knowledge, release, truth in runs)
    assert first == second


@every
def test_attack_without_query_access_says_so(attack: Attack, fitted: dict[str, Mechanism], parity: Splits) -> None:
    knowledge, release, truth = scene(fitted["dnn"], parity).stage(attack)
    with pytest.raises(RuleBroken, match="needs query access"):
        attack(release, replace(knowledge, query=None), truth)


@every
def test_attack_refuses_auxiliary_data_with_victims_in_it(
    attack: Attack, fitted: dict[str, Mechanism], parity: Splits
) -> None:
    knowledge, release, truth = scene(fitted["dnn"], parity).stage(attack)
    with pytest.raises(RuleBroken, match="victims are in the attacker's auxiliary data"):
        attack(release, replace(knowledge, auxiliary=parity.victim), truth)


class Cheat(ReconstructionAttack):
    """Tries to open the truth that it has got hold of."""

    name = "cheat"

    def __init__(self, truth: Truth) -> None:
        self.truth = truth

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        return self.truth.open().x


def test_attack_that_reads_the_truth_is_caught(fitted: dict[str, Mechanism], parity: Splits) -> None:
    stage = scene(fitted["dnn"], parity)
    with pytest.raises(RuleBroken, match="tried to read the victims' truth"):
        Cheat(stage.truth)(stage.release, stage.knowledge, stage.truth)


class Lazy(ReconstructionAttack):
    """Gives fewer guesses than there are records."""

    name = "lazy"

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        return knowledge.auxiliary.x[:3]


def test_attack_must_guess_every_record(fitted: dict[str, Mechanism], parity: Splits) -> None:
    stage = scene(fitted["dnn"], parity)
    with pytest.raises(RuleBroken, match="one finite guess for each"):
        Lazy()(stage.release, stage.knowledge, stage.truth)


def test_candidates_stand_in_an_order_that_says_nothing(fitted: dict[str, Mechanism], parity: Splits) -> None:
    knowledge, _, truth = scene(fitted["none"], parity).stage(ReidentifyByQuery())
    assert knowledge.candidates is not None
    positions = truth.positions()
    assert (knowledge.candidates.x[positions] == truth.open().x).all()
    assert (positions == np.arange(len(positions))).mean() < 0.1


def test_candidates_bring_their_labels_and_leave_their_ids_behind(fitted: dict[str, Mechanism], parity: Splits) -> None:
    knowledge, _, truth = scene(fitted["none"], parity).stage(ReidentifyByQuery())
    assert knowledge.candidates is not None
    positions, victims = truth.positions(), truth.open()
    assert (knowledge.candidates.private["ge5"][positions] == victims.private["ge5"]).all()
    assert knowledge.candidates.ids.tolist() == [str(place) for place in range(len(victims))]
    assert not set(knowledge.candidates.ids.tolist()) & set(victims.ids.tolist())


def test_public_deterministic_encoder_can_never_hide_which_candidate(
    fitted: dict[str, Mechanism], parity: Splits
) -> None:
    for name in ("dnn", "ran"):
        knowledge, release, truth = scene(fitted[name], parity).stage(ReidentifyByQuery())
        assert primary(ReidentifyByQuery()(release, knowledge, truth).scores).value == 1.0


def test_candidates_without_noise_are_nearer_than_a_mean_of_noisy_answers(
    fitted: dict[str, Mechanism], parity: Splits
) -> None:
    encoder = fitted["dnn"].public_encoder()
    assert encoder is not None
    rate = {}
    for attack in (ReidentifyByEncoder(), ReidentifyByQuery()):
        knowledge, release, truth = scene(fitted["dnn"], parity).stage(attack)
        chance = np.random.default_rng(0)
        width = 3.0 * release.payload.std()

        def noisy(payload: FloatArray, chance: np.random.Generator = chance, width: float = width) -> FloatArray:
            return (payload + width * chance.standard_normal(payload.shape)).astype(np.float32)

        clean = knowledge.query
        assert clean is not None
        known = replace(knowledge, randomised=True, query=lambda data, clean=clean: noisy(clean(data)))
        moved = replace(release, payload=noisy(release.payload))
        rate[attack.name] = primary(attack(moved, known, truth).scores).value
    assert rate["reid-encode"] > rate["reid-query"] > 1 / 100


def test_suite_probes_every_private_label(parity: Splits) -> None:
    names = [attack.name for attack in suite(parity.schema)]
    assert names.count("probe-linear") == 1
    assert {"inverse-mirror", "inverse-residual", "reid-decode", "reid-encode", "reid-query"} <= set(names)
