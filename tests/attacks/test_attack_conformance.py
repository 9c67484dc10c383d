"""Every attack on plain payloads keeps the promises of an attack; and those of the contract itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sfumato.attacks.attribute.picture_probe import PictureProbe
from sfumato.attacks.attribute.probes import KINDS, AttributeProbe, ResidualProbe
from sfumato.attacks.base import Attack, ReconstructionAttack
from sfumato.attacks.reconstruction.encoder_inversion import EncoderInversion
from sfumato.attacks.reconstruction.inverse_network import InverseNetwork
from sfumato.attacks.reconstruction.latent_search import LatentSearch
from sfumato.attacks.reconstruction.ridge_inverse import RidgeInverse
from sfumato.attacks.registry import features_suite
from sfumato.attacks.reidentification.candidates import (
    ReidentifyByAlignment,
    ReidentifyByDecoding,
    ReidentifyByEncoder,
    ReidentifyByQuery,
)
from sfumato.core.dataset import FloatArray, Splits
from sfumato.core.errors import RuleBroken
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.release import Release
from sfumato.mechanisms.base import Mechanism
from sfumato.testing import AttackConformance, AuditStage, primary

residual = InverseNetwork(decoder="residual", epochs=2, width=8, fewest_steps=60)
ATTACKS: list[Attack] = [
    InverseNetwork(decoder="mirror", epochs=2, fewest_steps=80),
    residual,
    EncoderInversion(inverse=residual, steps=30, starts=1),
    LatentSearch(inverse=residual, steps=30, starts=1, training=60),
    *(AttributeProbe(label="ge5", kind=kind) for kind in KINDS),
    ResidualProbe(label="ge5", epochs=5, width=64, fewest_steps=60),
    ReidentifyByDecoding(inverse=residual),
    ReidentifyByEncoder(),
    ReidentifyByQuery(),
    RidgeInverse(),
    ReidentifyByAlignment(),
]


class TestEveryAttackOnFeatures(AttackConformance):
    @pytest.fixture(params=ATTACKS, ids=lambda attack: attack.name)
    def attack(self, request: pytest.FixtureRequest) -> Attack:
        found: Attack = request.param
        return found

    @pytest.fixture
    def undefended(self, attack: Attack, fitted: dict[str, Mechanism]) -> Mechanism:
        # raw records have no encoder to mirror: there the undefended release is the plain feature
        return fitted["dnn" if attack.name == "inverse-mirror" else "none"]

    @pytest.fixture
    def plain(self, fitted: dict[str, Mechanism]) -> Mechanism:
        return fitted["dnn"]

    def test_attack_is_repeatable(
        self, attack: Attack, plain: Mechanism, splits: Splits, fitted: dict[str, Mechanism]
    ) -> None:
        randomised = plain if attack.name == "inverse-mirror" else fitted["noisy"]
        super().test_attack_is_repeatable(attack, randomised, splits)

    def test_attack_without_query_access_says_so(self, attack: Attack, plain: Mechanism, splits: Splits) -> None:
        knowledge, release, truth = AuditStage(plain, splits).stage(attack)
        with pytest.raises(RuleBroken, match="needs query access"):
            attack(release, replace(knowledge, query=None), truth)


class TestPictureProbe(AttackConformance):
    """It reads pictures alone, so everything is tried on raw ones."""

    @pytest.fixture
    def attack(self) -> Attack:
        return PictureProbe(label="ge5", epochs=3, width=8, fewest_steps=60)

    @pytest.fixture
    def undefended(self, fitted: dict[str, Mechanism]) -> Mechanism:
        return fitted["none"]


class Cheat(ReconstructionAttack):
    """Tries to open the truth that it has got hold of."""

    name = "cheat"

    def __init__(self, truth: Truth) -> None:
        self.truth = truth

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        return self.truth.open().x


def test_attack_that_reads_the_truth_is_caught(fitted: dict[str, Mechanism], parity: Splits) -> None:
    stage = AuditStage(fitted["dnn"], parity).scene
    with pytest.raises(RuleBroken, match="tried to read the victims' truth"):
        Cheat(stage.truth)(stage.release, stage.knowledge, stage.truth)


class Lazy(ReconstructionAttack):
    """Gives fewer guesses than there are records."""

    name = "lazy"

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        return knowledge.auxiliary.x[:3]


def test_attack_must_guess_every_record(fitted: dict[str, Mechanism], parity: Splits) -> None:
    stage = AuditStage(fitted["dnn"], parity).scene
    with pytest.raises(RuleBroken, match="one finite guess for each"):
        Lazy()(stage.release, stage.knowledge, stage.truth)


def test_candidates_stand_in_an_order_that_says_nothing(fitted: dict[str, Mechanism], parity: Splits) -> None:
    knowledge, _, truth = AuditStage(fitted["none"], parity).stage(ReidentifyByQuery())
    assert knowledge.candidates is not None
    positions = truth.positions()
    assert (knowledge.candidates.x[positions] == truth.open().x).all()
    assert (positions == np.arange(len(positions))).mean() < 0.1


def test_candidates_bring_their_labels_and_leave_their_ids_behind(fitted: dict[str, Mechanism], parity: Splits) -> None:
    knowledge, _, truth = AuditStage(fitted["none"], parity).stage(ReidentifyByQuery())
    assert knowledge.candidates is not None
    positions, victims = truth.positions(), truth.open()
    assert (knowledge.candidates.private["ge5"][positions] == victims.private["ge5"]).all()
    assert knowledge.candidates.ids.tolist() == [str(place) for place in range(len(victims))]
    assert not set(knowledge.candidates.ids.tolist()) & set(victims.ids.tolist())


def test_public_deterministic_encoder_can_never_hide_which_candidate(
    fitted: dict[str, Mechanism], parity: Splits
) -> None:
    for name in ("dnn", "ran"):
        knowledge, release, truth = AuditStage(fitted[name], parity).stage(ReidentifyByQuery())
        assert primary(ReidentifyByQuery()(release, knowledge, truth).scores).value == 1.0


def test_candidates_without_noise_are_nearer_than_a_mean_of_noisy_answers(
    fitted: dict[str, Mechanism], parity: Splits
) -> None:
    encoder = fitted["dnn"].public_encoder()
    assert encoder is not None
    rate = {}
    for attack in (ReidentifyByEncoder(), ReidentifyByQuery()):
        knowledge, release, truth = AuditStage(fitted["dnn"], parity).stage(attack)
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
    names = [attack.name for attack in features_suite(parity.schema)]
    assert names.count("probe-linear") == 1
    assert "probe-cnn" not in names
    assert "probe-cnn" in [attack.name for attack in features_suite(parity.schema, pictures=True)]
    assert {"inverse-mirror", "inverse-residual", "reid-decode", "reid-encode", "reid-query"} <= set(names)
