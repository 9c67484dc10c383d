"""Attacks on a private label that is a number keep the promises of an attack."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sfumato.attacks.attribute.number_floor import ClassByNumber, NumberByUtility, NumberFromLabels, NumberReading
from sfumato.attacks.attribute.number_probes import NUMBER_KINDS, NumberProbe, ResidualNumberProbe
from sfumato.attacks.base import Attack
from sfumato.attacks.label_codes import mean_of_same_labels, side_by_side
from sfumato.attacks.registry import features_suite
from sfumato.core.dataset import Dataset, Splits
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.number_scale import NumberScale
from sfumato.core.release import raw_release
from sfumato.core.schema import Column, Schema
from sfumato.mechanisms.base import Mechanism
from sfumato.testing import AttackConformance, numbered, parity_digits, primary, wins

SHORT = {"epochs": 10, "width": 32, "fewest_steps": 200}


@pytest.fixture(scope="module")
def inked() -> Splits:
    """Digits whose ``ink`` may be used and whose ``height`` is private."""
    parts = {name: numbered(part) for name, part in parity_digits().parts.items()}
    return Splits(**parts)


class TestNumberProbes(AttackConformance):
    @pytest.fixture(
        params=[NumberProbe(label="height", kind="ridge"), ResidualNumberProbe(label="height", **SHORT)],  # type: ignore[arg-type]
        ids=lambda attack: attack.name,
    )
    def attack(self, request: pytest.FixtureRequest) -> Attack:
        found: Attack = request.param
        return found

    @pytest.fixture
    def splits(self, inked: Splits) -> Splits:
        return inked

    @pytest.fixture
    def undefended(self, fitted: dict[str, Mechanism]) -> Mechanism:
        return fitted["none"]

    @pytest.fixture
    def plain(self, fitted: dict[str, Mechanism]) -> Mechanism:
        return fitted["dnn"]


def table(n: int, seed: int) -> Dataset:
    """Pay may be used, age is private and follows from pay but for noise, and so does whether somebody is old."""
    rng = np.random.default_rng(seed)
    pay, noise = rng.uniform(0.0, 100.0, n), rng.normal(0.0, 5.0, n)
    age = 20.0 + pay / 2.0 + noise
    scales = {"pay": NumberScale(0.0, 100.0), "age": NumberScale(0.0, 100.0)}
    columns = (Column("a", "numeric"), Column("b", "numeric"))
    private = {"age": (), "old": ("no", "yes")}
    schema = Schema("table", (2,), utility={"pay": ()}, private=private, columns=columns, numbers=scales)
    x = np.stack([pay / 100.0, rng.random(n)], axis=1).astype(np.float32)
    codes = {"age": scales["age"].codes(age), "old": (age > 45.0).astype(np.int64)}
    ids = np.array([f"{seed}:{row}" for row in range(n)])
    return Dataset(x, schema, {"pay": scales["pay"].codes(pay)}, codes, ids)


@pytest.fixture(scope="module")
def world() -> tuple[Knowledge, Dataset]:
    return Knowledge(auxiliary=table(400, 1), query=lambda data: data.x.copy(), seed=0), table(300, 2)


READ = NumberReading(ResidualNumberProbe(label="pay", **SHORT))  # type: ignore[arg-type]
EVERY: list[Attack] = [
    *(NumberProbe(label="age", kind=kind) for kind in NUMBER_KINDS),
    NumberProbe(label="age", kind="trees", with_labels=True),
    NumberByUtility(label="age", reading=READ),
    NumberFromLabels(label="age"),
    ClassByNumber(label="old", reading=READ),
]


@pytest.mark.parametrize("attack", EVERY, ids=lambda attack: f"{attack.name}-{attack.threat}")
def test_every_attack_wins_where_nothing_is_defended(attack: Attack, world: tuple[Knowledge, Dataset]) -> None:
    knowledge, victim = world
    score = primary(attack(raw_release(victim), knowledge, Truth(victim)).scores)
    assert wins(score) and score.target == attack.target()
    assert score.metric == ("advantage" if isinstance(attack, ClassByNumber) else "r2")
    if score.metric == "r2":  # 1 − 25/(25 + (50/√12)²) can be explained
        assert 0.75 < score.value <= 0.95 and abs(score.baseline or 0.0) < 0.05


def test_baseline_is_the_mean_by_r2_and_the_median_by_the_absolute_error(world: tuple[Knowledge, Dataset]) -> None:
    knowledge, victim = world
    skewed = replace(knowledge.auxiliary, private={**knowledge.auxiliary.private})
    attack = NumberProbe(label="age", kind="ridge")
    scores = attack(raw_release(victim), replace(knowledge, auxiliary=skewed), Truth(victim)).scores
    truth, own = victim.numbers("age"), skewed.numbers("age")
    least = min(np.abs(truth - middle).mean() for middle in (own.mean(), np.median(own)))
    assert {s.metric: s.baseline for s in scores}["mae"] == pytest.approx(least)


def test_suite_asks_about_numbers_with_regressions_and_about_classes_with_classifiers() -> None:
    suite = features_suite(table(10, 0).schema, labels_leave=True)
    about = {name: {a.name for a in suite if a.target() == name and a.threat == "attribute"} for name in ("age", "old")}
    assert about["age"] == {*(f"probe-{kind}" for kind in NUMBER_KINDS), "probe-residual", "by-pay"}
    assert about["old"] == {f"probe-{kind}" for kind in ("linear", "elu", "mlp", "trees", "knn", "residual")} | {
        "by-pay"
    }


def test_released_numbers_stand_beside_the_payload_as_shares_of_their_range() -> None:
    data = table(5, 0)
    assert side_by_side(data.utility, data.schema)[:, 0] == pytest.approx(data.numbers("pay") / 100.0, abs=1e-6)


def test_records_with_about_the_same_number_share_a_mean() -> None:
    data = table(1600, 0)
    means = mean_of_same_labels(data.utility, data, data.x)
    assert np.corrcoef(means[:, 0], data.x[:, 0])[0, 1] > 0.99 and len(np.unique(means[:, 0])) == 16
