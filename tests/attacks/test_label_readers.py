"""Readers of a private label: the residual probe sees through noise that the others learn by heart."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from sfumato.attacks.attribute.probes import KINDS, AttributeProbe, ResidualProbe
from sfumato.attacks.attribute.queried_records import QueriedRecords
from sfumato.attacks.attribute.utility_floor import ByUtility, UtilityReading
from sfumato.attacks.base import AttributeAttack
from sfumato.attacks.shared_labels import LabelMean, LabelOnly
from sfumato.auditing import SMOKE
from sfumato.auditing.repeated_releases import repeated_steps
from sfumato.core.dataset import Dataset, FloatArray, Splits
from sfumato.core.guarantee import empirical
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.release import Release
from sfumato.core.schema import Column, Schema
from sfumato.mechanisms.base import Mechanism
from sfumato.testing import AuditStage

NUISANCE = 14
MIXED = np.linalg.qr(np.random.default_rng(3).normal(size=(2 + NUISANCE,) * 2))[0]


def signs(records: int, first: int) -> Dataset:
    """Two signs a record; the private label says whether they agree, the utility label is a noisy copy of it."""
    rng = np.random.default_rng(first)
    x = rng.integers(0, 2, (records, 2)).astype(np.float32)
    agree = (x[:, 0] == x[:, 1]).astype(np.int64)
    told = np.where(rng.random(records) < 0.8, agree, 1 - agree)
    columns = (Column("a", "numeric"), Column("b", "numeric"))
    yes_no = ("no", "yes")
    schema = Schema("table", (2,), columns=columns, utility={"told": yes_no}, private={"agree": yes_no})
    ids = np.array([f"{first}-{row}" for row in range(records)])
    return Dataset(x, schema, {"told": told}, {"agree": agree}, ids, name="signs")


def hidden(data: Dataset, rng: np.random.Generator) -> FloatArray:
    """Both signs in noise, turned among numbers that are noise alone."""
    payload = rng.normal(size=(len(data), 2 + NUISANCE))
    payload[:, :2] = 2 * data.x - 1 + 0.8 * payload[:, :2]
    return (payload @ MIXED).astype(np.float32)


@cache
def toy() -> tuple[Release, Knowledge, Truth]:
    rng = np.random.default_rng(7)
    attacker, victim = signs(300, 1), signs(2000, 2)
    knowledge = Knowledge(attacker, query=lambda data: hidden(data, rng), randomised=True)
    return Release("toy", hidden(victim, rng), empirical("A toy."), victim.utility), knowledge, Truth(victim)


def value(attack: AttributeAttack, metric: str = "accuracy") -> float:
    release, knowledge, truth = toy()
    return next(s.value for s in attack(release, knowledge, truth).scores if s.metric == metric)


def test_the_residual_probe_reads_what_two_draws_of_the_noise_hide_from_the_others() -> None:
    strongest = value(ResidualProbe(label="agree", width=64))
    twice = QueriedRecords(records=300, draws=2)
    others = {kind: value(AttributeProbe(label="agree", kind=kind, queried=twice)) for kind in KINDS}
    right = 0.8944  # Φ(1/0.8), how often one sign is read
    best = right**2 + (1 - right) ** 2
    assert best + 0.02 > strongest > max(others.values()) + 0.05, others
    assert strongest > best - 0.06


def test_labels_that_leave_are_read_alone_and_beside_the_payload() -> None:
    alone = value(LabelOnly(label="agree"))
    payload = value(ResidualProbe(label="agree", width=64))
    both = value(ResidualProbe(label="agree", width=64, with_labels=True))
    assert alone == pytest.approx(0.8, abs=0.02)  # the label is a copy that is right in 80 %
    assert both > max(alone, payload) + 0.02


def test_the_class_mean_of_the_labels_that_leave_rebuilds_records() -> None:
    """Records that are their label: the mean of the class is the record."""
    x = np.repeat(np.eye(2, dtype=np.float32), 50, axis=0)
    schema = Schema("table", (2,), columns=(Column("a", "numeric"), Column("b", "numeric")), utility={"u": ("0", "1")})
    own, victim = (Dataset(x, schema, {"u": x[:, 1].astype(np.int64)}, name=name) for name in ("own", "victim"))
    release = Release("toy", np.zeros((100, 1), dtype=np.float32), empirical("A toy."), victim.utility)
    error = LabelMean()(release, Knowledge(own), Truth(victim)).scores[0]
    assert error.value < 0.001 and error.baseline == pytest.approx(0.25)


def test_the_floor_is_what_follows_from_the_utility_that_is_read() -> None:
    """Who reads u with accuracy a guesses y with a·p + (1 − a)(1 − p)."""
    rng = np.random.default_rng(11)

    def flipped(data: Dataset) -> FloatArray:
        told = data.utility["told"]
        return np.where(rng.random(len(told)) < 0.9, told, 1 - told).astype(np.float32)[:, None]

    _, known, truth = toy()
    victim = signs(2000, 2)
    release = Release("toy", flipped(victim), empirical("A toy."), victim.utility)
    probe = ResidualProbe(label="told", epochs=3, width=16, fewest_steps=60)
    floor = ByUtility(label="agree", reading=UtilityReading(probe))
    score = floor(release, replace(known, query=flipped), truth).scores[0]
    assert score.value == pytest.approx(0.9 * 0.8 + 0.1 * 0.2, abs=0.025)
    assert (score.attack, score.follows) == ("by-told", "told")


def test_who_averages_more_releases_reads_more(fitted: dict[str, Mechanism], parity: Splits) -> None:
    effort = replace(SMOKE, averages=(4, 16), threats=("attribute",))
    scene = AuditStage(fitted["noisy"], parity, effort).scene
    found = [s for step in repeated_steps(scene) for s in step.do(lambda _: None).repeated if s.metric == "auroc"]
    assert [(s.attack, s.releases) for s in found] == [("probe-residual-of-4", 4), ("probe-residual-of-16", 16)]
    assert 0.6 < found[0].value < found[1].value


def test_a_release_that_never_changes_is_not_averaged(fitted: dict[str, Mechanism], parity: Splits) -> None:
    assert not list(repeated_steps(AuditStage(fitted["dnn"], parity, SMOKE).scene))


def test_the_residual_probe_reads_payloads_of_any_width() -> None:
    labels = np.arange(120) % 2
    for width in (3, 1500, 5000):  # as they are, in principal components, in components of a part of the records
        features = (np.random.default_rng(0).normal(size=(120, width)) + 2 * labels[:, None]).astype(np.float32)
        probe = ResidualProbe(label="private", epochs=2, width=8, fewest_steps=20, queried=QueriedRecords())
        model = probe.fit(features[None], labels, seed=0)
        assert (model.predict_proba(features).argmax(1) == labels).mean() > 0.9, width
