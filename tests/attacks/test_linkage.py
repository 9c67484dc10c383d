"""Two releases of one person: linked where nothing is defended, skipped with a reason where nobody has two records."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.attacks.base import Attack
from sfumato.attacks.linkage.person_embedding import fit_embedding, person_likeness
from sfumato.attacks.linkage.two_releases import LinkageAttack, LinkByDecoding, LinkByMetric, LinkByPayload
from sfumato.attacks.reconstruction.inverse_network import InverseNetwork
from sfumato.attacks.registry import features_suite
from sfumato.attacks.reidentification.candidates import nearest
from sfumato.core.dataset import Dataset, Splits
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.baselines.plain_features import DNN
from sfumato.mechanisms.baselines.raw_records import Undefended
from sfumato.testing import AttackConformance, AuditStage, wins

decoder = InverseNetwork(decoder="residual", epochs=1, width=4, fewest_steps=30)
ATTACKS: list[LinkageAttack] = [LinkByPayload(), LinkByDecoding(inverse=decoder), LinkByMetric()]


def _people(count: int, name: str, seed: int) -> Dataset:
    """Four pictures of each of ``count`` people: one face each, under a light that differs from picture to picture."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(count), 4)
    face = rng.random((count, 1, 16, 16))[person]
    light = np.linspace(-1.0, 1.0, 16) * rng.normal(size=(len(person), 1, 1, 1))
    x = np.clip(0.5 * face + 0.25 + 0.1 * light + 0.05 * rng.normal(size=face.shape), 0.0, 1.0)
    labels = {"bright": (face.mean(axis=(1, 2, 3)) > 0.5).astype(int)}
    return Dataset.from_arrays(x, utility=labels, ids=[f"{name}{one}" for one in person], name=name)


@pytest.fixture(scope="module")
def people() -> Splits:
    return Splits(_people(40, "owner", 1), _people(30, "attacker", 2), _people(30, "victim", 3))


@pytest.fixture(scope="module")
def features(people: Splits) -> Mechanism:
    return DNN(epochs=2).fit(people.owner)


class TestEveryLinkage(AttackConformance):
    @pytest.fixture(params=ATTACKS, ids=lambda attack: attack.name)
    def attack(self, request: pytest.FixtureRequest) -> Attack:
        found: Attack = request.param
        return found

    @pytest.fixture
    def splits(self, people: Splits) -> Splits:
        return people

    @pytest.fixture
    def undefended(self, people: Splits) -> Mechanism:
        return Undefended(epochs=1).fit(people.owner)

    @pytest.fixture
    def plain(self, features: Mechanism) -> Mechanism:
        return features

    def test_attack_beats_its_baseline_on_plain_features(
        self, attack: Attack, plain: Mechanism, splits: Splits
    ) -> None:
        score = AuditStage(plain, splits).score(attack)
        assert score.baseline == pytest.approx(1 / 30)
        assert wins(score)


def test_two_releases_share_the_people_and_no_record(features: Mechanism, people: Splits) -> None:
    stage = AuditStage(features, people)
    knowledge, release, truth = stage.stage(LinkByPayload())
    assert knowledge.linked is not None
    who, here = truth.positions(), truth.open()
    assert set(who.tolist()) == set(knowledge.linked.people.tolist()) == set(range(30))
    assert len(release) + len(knowledge.linked.people) == len(people.victim)
    rows = {row.tobytes() for row in release.payload}
    assert not any(row.tobytes() in rows for row in knowledge.linked.payload)
    assert len({(one, other) for one, other in zip(who.tolist(), here.ids.tolist(), strict=True)}) == 30


def test_learnt_metric_ignores_what_one_persons_records_differ_in() -> None:
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(50), 4)
    lasting, passing = 10.0 * rng.normal(size=(50, 10))[person], 30.0 * rng.normal(size=(200, 3))
    x = np.concatenate([lasting, passing], axis=1).astype(np.float32)
    embedded = fit_embedding(x[:100], person[:100], 0)(x[100:])
    for points, least, most in ((x[100:], 0.0, 0.7), (embedded, 0.9, 1.0)):
        right = person[100:][1::2][nearest(points[::2], points[1::2])] == person[100:][::2]
        assert least <= right.mean() <= most


def test_data_without_repeated_subjects_is_skipped_with_the_reason(
    parity: Splits, fitted: dict[str, Mechanism]
) -> None:
    stage = AuditStage(fitted["dnn"], parity)
    for attack in ATTACKS:
        knowledge, _, truth = stage.stage(attack)
        reason = attack.obstacle(knowledge)
        assert reason is not None and "no subject among the victims has two records" in reason
        assert truth.likeness(parity.victim.x) is None


def test_suite_links(people: Splits) -> None:
    names = {attack.name for attack in features_suite(people.schema)}
    assert {attack.name for attack in ATTACKS} <= names


def test_likeness_is_high_for_the_person_and_nil_for_another(people: Splits) -> None:
    own, victim = people.attacker, people.victim
    likeness = person_likeness(fit_embedding(own.x, own.ids, 0), victim)
    person, stranger = likeness(victim, victim.x), likeness(victim, np.roll(victim.x, 4, axis=0))
    assert person.mean() > 0.5
    assert abs(stranger.mean()) < 0.1


def test_rebuilt_faces_are_scored_by_their_person_too(features: Mechanism, people: Splits) -> None:
    stage = AuditStage(features, people)
    knowledge, release, truth = stage.stage(decoder)
    scores = {score.metric: score for score in decoder(release, knowledge, truth).scores}
    assert scores["identity"].baseline is not None
    assert not scores["identity"].primary
