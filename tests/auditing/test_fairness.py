"""Fairness: figures by hand, intervals that cover, and nobody left out in silence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sfumato.auditing import Audit, audit
from sfumato.auditing.fairness import MEASURES, ODDS, OPPORTUNITY, PARITY, fairness_scores, unmeasured
from sfumato.core.dataset import Dataset, Splits
from sfumato.core.schema import Schema
from sfumato.core.score import Score
from sfumato.core.threats import threat
from sfumato.mechanisms import mechanism_class
from sfumato.studies.fairness_rows import fairness_rows
from sfumato.testing import TINY

Codes = Sequence[int] | np.ndarray[Any, Any]
ALL = tuple(MEASURES)


def people(y: Codes, a: Codes, *, classes: int = 2, groups: int = 2, ids: Any = None) -> Dataset:
    """Records of which only income (the truth) and sex (the group) matter."""
    income, sex = np.array(y, dtype=np.int64), np.array(a, dtype=np.int64)
    names = {"utility": {"income": tuple("uvwxyz"[:classes])}, "private": {"sex": tuple("abcdef"[:groups])}}
    whose = {} if ids is None else {"ids": np.asarray(ids).astype(str), "named": True}
    schema = Schema("table", (1,), **names)
    return Dataset(np.zeros((len(y), 1), np.float32), schema, {"income": income}, {"sex": sex}, **whose)


def found(victim: Dataset, guess: Codes, **control: float) -> dict[str, Score]:
    said = np.eye(len(victim.schema.classes("income")), dtype=np.float32)[np.asarray(guess)]
    scores = fairness_scores("classifier", "income", said, victim, control, primary=True)
    return {score.metric: score for score in scores}


def cells(*counts: tuple[int, int, int, int]) -> tuple[Dataset, np.ndarray[Any, Any]]:
    """Victims and predictions from rows (group, truth, prediction, how many)."""
    a, y, guess = (np.repeat([row[i] for row in counts], [row[3] for row in counts]) for i in range(3))
    return people(y, a), guess


BY_HAND = (
    # group a: 100 of class v (80 found), 100 of class u (10 wrongly v); group b: 40 (20 found), 160 (32 wrongly v)
    *((0, 1, 1, 80), (0, 1, 0, 20), (0, 0, 1, 10), (0, 0, 0, 90)),
    *((1, 1, 1, 20), (1, 1, 0, 20), (1, 0, 1, 32), (1, 0, 0, 128)),
)


def test_the_three_differences_are_those_computed_by_hand() -> None:
    scores = found(*cells(*BY_HAND))
    assert scores[PARITY].value == pytest.approx(90 / 200 - 52 / 200)
    assert scores[OPPORTUNITY].value == pytest.approx(80 / 100 - 20 / 40)
    assert scores[ODDS].value == pytest.approx(max(0.3, 32 / 160 - 10 / 100))
    assert scores[OPPORTUNITY].note == "Of income v."
    assert (scores[PARITY].n, scores[OPPORTUNITY].n, scores[ODDS].n) == (400, 140, 400)
    assert all(score.better_for_owner == "lower" and score.about == "income by sex" for score in scores.values())


def test_false_alarms_alone_make_the_odds_unequal() -> None:
    scores = found(*cells((0, 1, 1, 50), (1, 1, 1, 50), (0, 0, 1, 30), (0, 0, 0, 30), (1, 0, 0, 60)))
    assert (scores[OPPORTUNITY].value, scores[ODDS].value) == (0.0, 0.5)


def test_with_several_classes_the_largest_difference_counts() -> None:
    y, a = np.repeat([0, 1, 2, 0, 1, 2], 40), np.repeat([0, 0, 0, 1, 1, 1], 40)
    guess = y.copy()
    guess[-40:-10] = 1  # 30 of the last class in group b are taken for the middle one
    scores = found(people(y, a, classes=3), guess)
    assert scores[OPPORTUNITY].value == pytest.approx(0.75)
    assert scores[PARITY].value == pytest.approx(30 / 120)
    assert scores[OPPORTUNITY].note == ""


def test_a_classifier_that_says_the_group_is_as_unfair_as_can_be() -> None:
    a = np.repeat([0, 1], 200)
    scores = found(people(np.arange(400) % 2, a), a)
    for metric in ALL:
        low, high = scores[metric].ci
        assert scores[metric].value == 1.0 and low > 0.9 and high == 1.0
        baseline = scores[metric].baseline
        assert baseline is not None and baseline < 0.15


def test_the_same_predictions_in_every_group_are_fair() -> None:
    y, guess = np.tile([0, 0, 1, 1], 60), np.tile([0, 1, 1, 1], 60)
    scores = found(people(np.tile(y, 2), np.repeat([0, 1], 240)), np.tile(guess, 2))
    for metric in ALL:
        assert scores[metric].value == 0.0 and scores[metric].ci[0] == 0.0 and scores[metric].ci[1] < 0.15


@pytest.mark.parametrize("seed", [0, 1])
def test_names_of_groups_and_order_of_records_do_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, a, guess = rng.integers(0, 3, 900), rng.integers(0, 3, 900), rng.integers(0, 3, 900)
    first = found(people(y, a, classes=3, groups=3), guess)
    order, renamed = rng.permutation(900), rng.permutation(3)[a]
    other = found(people(y[order], renamed[order], classes=3, groups=3), guess[order])
    for metric in ALL:
        assert other[metric].value == pytest.approx(first[metric].value)
        assert other[metric].ci == pytest.approx(first[metric].ci)


def test_the_baseline_is_what_shuffled_groups_show() -> None:
    victim, guess = cells(*BY_HAND)
    rng = np.random.default_rng(0)
    shuffled = [abs(np.diff([guess[sex == g].mean() for g in (0, 1)])[0]) for sex in (
        rng.permutation(victim.private["sex"]) for _ in range(400)
    )]  # fmt: skip
    assert found(victim, guess)[PARITY].baseline == pytest.approx(np.mean(shuffled), rel=0.2)


@pytest.mark.parametrize("rates", [(0.3, 0.3), (0.2, 0.35), (0.01, 0.05)])
def test_the_interval_covers_also_where_there_is_no_difference(rates: tuple[float, float]) -> None:
    rng = np.random.default_rng(0)
    a = np.repeat([0, 1], [150, 60])
    victim = people(np.ones(210, dtype=np.int64), a)
    truth, hit = abs(rates[0] - rates[1]), 0
    for _ in range(200):
        low, high = found(victim, (rng.random(210) < np.array(rates)[a]).astype(int))[PARITY].ci
        hit += low <= truth <= high
    assert hit >= 186, "of 200; 95 % are 190"


def test_records_of_few_people_say_less_than_as_many_people() -> None:
    a, y = np.repeat([0, 1], 200), np.tile([0, 1], 200)
    guess = np.repeat(np.arange(20) % 3 == 0, 20).astype(int)  # everybody is always told the same
    alone, few = (
        found(people(y, a), guess)[PARITY],
        found(people(y, a, ids=np.repeat(np.arange(20), 20)), guess)[PARITY],
    )
    assert few.value == alone.value and few.people == 20
    assert few.ci[1] - few.ci[0] > 2 * (alone.ci[1] - alone.ci[0])
    assert few.baseline is not None and alone.baseline is not None and few.baseline > 2 * alone.baseline


def test_a_small_group_is_left_out_and_named() -> None:
    a = np.repeat([0, 1, 2], [100, 100, 29])
    victim, guess = people(np.tile([0, 1], 115)[:229], a, groups=3), (a == 2).astype(int)
    scores = found(victim, guess)
    assert scores[PARITY].value == 0.0 and scores[PARITY].n == 200
    assert scores[PARITY].note == "Left out, with fewer than 30 records: sex c."
    assert "sex c with income v, sex c without income v" in scores[ODDS].note
    assert unmeasured(victim, ["income"]) == []


def test_what_cannot_be_compared_has_no_score_and_a_reason() -> None:
    victim = people(np.repeat([0, 1], [90, 10]), np.tile([0, 1], 50))
    scores = found(victim, np.zeros(100, dtype=int))
    assert set(scores) == {PARITY, ODDS} and "with income v" in scores[ODDS].note
    ((name, reason),) = unmeasured(victim, ["income"])
    assert name == "fairness of income by sex"
    assert reason == f"{OPPORTUNITY}: no two groups of sex have 30 victims each that could be compared"


def test_the_control_is_of_the_same_metric_and_label() -> None:
    victim, guess = cells(*BY_HAND)
    scores = found(victim, guess, **{f"{PARITY}:sex": 0.4, "accuracy": 0.9})
    assert (scores[PARITY].control, scores[ODDS].control) == (0.4, None)


@pytest.fixture(scope="module")
def audited(parity: Splits) -> Audit:
    return audit(mechanism_class("dnn")(epochs=1).fit(parity.owner), parity, effort=replace(TINY, threats=()))


def test_an_audit_measures_fairness_and_ranks_nothing_by_it(audited: Audit) -> None:
    pairs = {(s.attack, s.metric) for s in audited.fairness}
    assert pairs == {(who, metric) for who in ("own classifier", "fresh classifier") for metric in ALL}
    for score in audited.fairness:
        fresh = score.attack == "fresh classifier"
        assert (score.primary, score.control is not None) == (fresh, fresh)
        assert (score.target, score.group, score.leakage) == ("odd", "ge5", None)
    assert audited.accuracy.threat == "utility" and audited.worst == {}
    assert {score.threat for score in audited.utility} == {"utility"}
    assert not threat("fairness").graded


def test_fairness_survives_the_json_and_old_scores_have_none(audited: Audit) -> None:
    stored = audited.to_json()
    again = [Score.from_json(value) for value in stored["fairness"]]
    assert [(s.key, s.value, s.note) for s in again] == [(s.key, s.value, s.note) for s in audited.fairness]
    assert len({score.key for score in again}) == len(again) and "fairness" in stored["threats"]
    rows = fairness_rows(stored, "dnn")
    assert [row.name for row in rows] == [f"dnn: {metric.replace('-', ' ')}, odd by ge5" for metric in ALL]
    assert all(row.better == "lower" and row.ci is not None and row.asked is None for row in rows)
    assert fairness_rows({"utility": []}, "old") == []
