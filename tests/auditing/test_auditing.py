"""The audit: repeatable, blind to the truth, the worst attack counts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sfumato.auditing import CPU, FULL, SMOKE, Audit, Controls, Effort, audit
from sfumato.auditing.effort import effort_named
from sfumato.core.dataset import Splits
from sfumato.core.errors import UsageError
from sfumato.data import split
from sfumato.mechanisms import mechanism_class
from sfumato.mechanisms.base import Mechanism

TINY = Effort(attack_epochs=1, attack_width=16, attack_steps=20, task_epochs=1, candidates=30)


@pytest.fixture(scope="module")
def few(digits: Splits) -> Splits:
    """300 of the digits."""
    return split(digits.owner.take(slice(None, None, 3)), seed=0)


@pytest.fixture(scope="module")
def plain(few: Splits) -> Mechanism:
    return mechanism_class("dnn")(epochs=1).fit(few.owner)


@pytest.fixture(scope="module")
def audited(plain: Mechanism, few: Splits) -> Audit:
    return audit(plain, few, effort=TINY)


def figures(result: Audit) -> list[Any]:
    return [(s.attack, s.target, s.metric, s.value, s.ci, s.baseline) for s in (*result.utility, *result.attacks)]


@pytest.mark.parametrize("name", ["dnn", "noisy"])
def test_an_audit_can_be_repeated(few: Splits, plain: Mechanism, audited: Audit, name: str) -> None:
    if name == "dnn":
        first, mechanism = audited, plain
    else:
        mechanism = mechanism_class(name)(epochs=1).fit(few.owner)
        first = audit(mechanism, few, effort=TINY)
    assert figures(audit(mechanism, few, effort=TINY)) == figures(first)


def test_the_worst_attack_of_each_threat_counts(audited: Audit) -> None:
    errors = [s.value for s in audited.attacks if s.threat == "reconstruction" and s.metric == "mse"]
    assert audited.worst["reconstruction"].value == min(errors)
    rates = [s.value for s in audited.attacks if s.threat == "reidentification"]
    assert audited.worst["reidentification"].value == max(rates)
    assert "attribute:ge5" in audited.worst


def test_every_score_has_an_interval_a_baseline_and_a_count(audited: Audit, few: Splits) -> None:
    for score in (*audited.utility, *audited.attacks):
        assert score.ci[0] <= score.value <= score.ci[1]
        assert score.baseline is not None
        assert score.n in (len(few.victim), TINY.candidates)


def test_the_attackers_never_see_what_they_are_scored_on(plain: Mechanism, few: Splits, audited: Audit) -> None:
    shuffled = np.random.default_rng(0).permutation(len(few.victim))
    lied = replace(few.victim, private={"ge5": few.victim.private["ge5"][shuffled]})
    other = audit(plain, replace(few, victim=lied), effort=TINY)
    names = [name for name in audited.gallery if name.startswith("recon/")]
    assert names
    for name in names:
        np.testing.assert_array_equal(other.gallery[name], audited.gallery[name])


def test_shared_controls_change_no_figure(plain: Mechanism, few: Splits, audited: Audit) -> None:
    controls = Controls()
    for _ in range(2):
        shared = audit(plain, few, effort=TINY, controls=controls)
        assert [s.control for s in shared.attacks] == [s.control for s in audited.attacks]


def test_raw_records_are_read_back_perfectly(few: Splits) -> None:
    result = audit(mechanism_class("none")(epochs=1).fit(few.owner), few, effort=TINY)
    assert result.worst["reidentification"].value == 1.0
    assert result.worst["reconstruction"].value < 0.01


@pytest.mark.parametrize("records", [30, 90])
def test_few_records_and_rare_classes_can_be_audited(digits: Splits, records: int) -> None:
    source = digits.owner.take(slice(None, None, len(digits.owner) // records))
    hidden = np.where(np.arange(len(source)) % 3 == 0, np.arange(len(source)) // 3 % 3, 3)
    schema = replace(source.schema, private={"rare": ("a", "b", "c", "d")})
    cut = split(replace(source, schema=schema, private={"rare": hidden}), seed=1)
    result = audit(mechanism_class("none")(epochs=1).fit(cut.owner), cut, effort=TINY)
    assert len([s for s in result.attacks if s.target == "rare" and s.primary]) == 4


def test_an_audit_is_plain_json(audited: Audit) -> None:
    found = json.loads(json.dumps(audited.to_json(), allow_nan=False))
    assert set(found) >= {"mechanism", "data", "guarantee", "utility", "attacks", "worst"}


def test_efforts_have_names() -> None:
    assert [effort_named(name) for name in ("smoke", "cpu", "full")] == [SMOKE, CPU, FULL]
    with pytest.raises(UsageError, match="'cpu'"):
        effort_named("cpus")
