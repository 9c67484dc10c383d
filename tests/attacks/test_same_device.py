"""Attackers who use the victims' device: they find noise by content, and nothing more where noise is a person's."""

from __future__ import annotations

from typing import Any

import pytest
from few_records import ByContent, few_records

from sfumato.attacks.attribute.probes import AttributeProbe
from sfumato.attacks.base import Attack
from sfumato.attacks.reconstruction.inverse_network import InverseNetwork
from sfumato.attacks.registry import device_suite
from sfumato.attacks.same_device import NearestAnswer, SameDeviceDecoder, SameDeviceProbe
from sfumato.auditing.trials import trials
from sfumato.core.dataset import Splits
from sfumato.core.errors import RuleBroken
from sfumato.core.score import Score
from sfumato.mechanisms.ars.mechanism import ARS
from sfumato.mechanisms.base import Mechanism
from sfumato.testing import AuditStage
from sfumato.testing.attacks import wins

QUICK: dict[str, Any] = {"epsilon": 5.0, "latent": 16, "epochs": 4, "batch": 64}
decoder = InverseNetwork(epochs=2, width=8, fewest_steps=200)
probe = AttributeProbe(label="old", kind="knn")
DECODERS: tuple[Attack, ...] = (NearestAnswer(), SameDeviceDecoder(inner=decoder))


@pytest.fixture(scope="module")
def persons() -> Splits:
    return few_records(named=True)


@pytest.fixture(scope="module")
def by_content(persons: Splits) -> AuditStage:
    return AuditStage(ByContent(**QUICK).fit(persons.owner), persons)


@pytest.fixture(scope="module")
def by_person(persons: Splits) -> AuditStage:
    return AuditStage(ARS(**QUICK).fit(persons.owner), persons)


def score(attack: Attack, stage: AuditStage, metric: str) -> Score:
    knowledge, release, truth = stage.stage(attack)
    return next(each for each in attack(release, knowledge, truth).scores if each.metric == metric)


@pytest.mark.parametrize("attack", DECODERS, ids=lambda attack: attack.name)
def test_noise_by_content_is_found_by_whoever_uses_the_device(attack: Attack, by_content: AuditStage) -> None:
    found = score(attack, by_content, "whole-record")
    assert wins(found) and found.value > 0.9
    assert found.value > score(decoder, by_content, "whole-record").value + 0.3  # with another secret


@pytest.mark.parametrize("attack", DECODERS, ids=lambda attack: attack.name)
def test_noise_of_a_person_gives_the_device_s_other_users_nothing_more(attack: Attack, by_person: AuditStage) -> None:
    without = score(decoder, by_person, "whole-record")
    assert score(attack, by_person, "whole-record").value <= without.ci[1] + 0.02


def test_probes_read_noise_by_content_and_no_more_of_a_person_s(by_content: AuditStage, by_person: AuditStage) -> None:
    same = SameDeviceProbe(label="old", inner=probe)
    assert score(same, by_content, "auroc").value > score(probe, by_content, "auroc").ci[1]
    assert score(same, by_person, "auroc").value <= score(probe, by_person, "auroc").ci[1] + 0.02


def test_without_named_persons_somebody_else_s_equal_record_has_the_same_noise() -> None:
    """The limit that ars.md names: without an id nothing tells whose record it is."""
    splits = few_records()
    stage = AuditStage(ARS(**QUICK).fit(splits.owner), splits)
    assert score(NearestAnswer(), stage, "whole-record").value > 0.9


def test_a_device_without_a_secret_has_no_such_attacks(by_person: AuditStage, persons: Splits) -> None:
    wanted = {attack.name for attack in device_suite(persons.schema)}
    assert wanted <= {trial.attack.name for trial in trials(by_person.plans)}
    fresh = AuditStage(ARS(keyed=False, **QUICK).fit(persons.owner), persons)
    assert not wanted & {trial.attack.name for trial in trials(fresh.plans)}


def test_an_undefended_device_gives_everything_away(by_person: AuditStage) -> None:
    for attack in DECODERS:
        control = by_person.control(attack)
        assert control is not None and control["whole-record"] > 0.9


def test_attack_without_a_device_says_so(fitted: dict[str, Mechanism], parity: Splits) -> None:
    knowledge, release, truth = AuditStage(fitted["dnn"], parity).stage(NearestAnswer())
    with pytest.raises(RuleBroken, match="needs a device that keeps a secret"):
        NearestAnswer()(release, knowledge, truth)
