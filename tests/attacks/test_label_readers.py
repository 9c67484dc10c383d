"""Readers of a private label: the residual probe sees through noise that the others learn by heart."""

from __future__ import annotations

from functools import cache

import numpy as np

from sfumato.attacks.attribute.probes import KINDS, AttributeProbe, ResidualProbe
from sfumato.attacks.attribute.queried_records import QueriedRecords
from sfumato.attacks.base import AttributeAttack
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.guarantee import empirical
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.release import Release
from sfumato.core.schema import Column, Schema

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
