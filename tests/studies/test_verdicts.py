"""A verdict needs the paper's statement, a scale and an interval; differences are paired; seeds are averaged."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sfumato.core.errors import RuleBroken
from sfumato.studies.papers import Claim
from sfumato.studies.rows import Row, aligned, bound_row, difference, over_seeds, quotient, ratio, remainder
from sfumato.studies.verdicts import ADAPTIVE, FAILS, FLAWED, HOLDS, OPEN, TESTED, Asked, statuses, verdict

ABOVE = Asked("ran-x", "above", 0.5)


@pytest.mark.parametrize(
    ("asked", "ci", "scale", "expected"),
    [
        (ABOVE, (0.6, 0.7), "cpu", HOLDS),
        (ABOVE, (0.3, 0.4), "cpu", FAILS),
        (ABOVE, (0.4, 0.6), "cpu", OPEN),
        (ABOVE, (0.5, 0.5), "cpu", OPEN),
        (ABOVE, (0.6, 0.7), "smoke", OPEN),
        (ABOVE, None, "cpu", OPEN),
        (None, (0.6, 0.7), "cpu", None),
        (Asked("ran-x", "below", 0.5), (0.3, 0.4), "cpu", HOLDS),
        (Asked("ran-x", "below", 0.5), (0.6, 0.7), "full", FAILS),
        (Asked("ran-x", "below", 0.5, unless="too few pictures"), (0.3, 0.4), "cpu", OPEN),
    ],
)
def test_verdict_needs_a_statement_a_scale_and_an_interval(
    asked: Asked | None, ci: tuple[float, float] | None, scale: str, expected: str | None
) -> None:
    assert verdict(asked, ci, scale) == expected


def test_row_without_an_interval_has_none_and_settles_nothing() -> None:
    stored = Row("x", "rate", "lower", None, 0.965, asked=ABOVE).to_json("cpu")
    assert (stored["ci"], stored["holds"], stored["verdict"]) == (None, None, OPEN)


def test_exact_figure_needs_no_interval() -> None:
    stored = Row("x", "probability", "lower", None, 0.6, asked=ABOVE, exact=True).to_json("smoke")
    assert (stored["ci"], stored["holds"]) == (None, True)


def test_counted_bound_is_no_exact_figure() -> None:
    """It refutes a claimed ε where it lies above, from a scale that warrants it; below, it proves nothing."""
    claimed = Asked("ran-x", "below", 1.0)
    assert bound_row("x", 6.0, asked=claimed).to_json("smoke")["verdict"] == OPEN
    assert bound_row("x", 6.0, asked=claimed).to_json("cpu")["verdict"] == FAILS
    assert bound_row("x", 0.1, asked=claimed).to_json("full")["verdict"] == OPEN
    stored = bound_row("x", 6.0, n=400).to_json("cpu")
    assert (stored["ci"], stored["exact"], stored["n"]) == ([6.0, None], False, 400)
    json.dumps(stored, allow_nan=False)  # an infinite end would be no JSON


def test_bound_of_several_seeds_has_no_upper_end_either() -> None:
    (row,) = over_seeds([[bound_row("x", value)] for value in (5.0, 6.0, 7.0)])
    stored = row.to_json("cpu")
    assert stored["ours"] == pytest.approx(6.0)
    assert stored["ci"][0] < 5.0 and stored["ci"][1] is None


def result(
    values: np.ndarray, people: np.ndarray | None = None, rows: np.ndarray | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    key = "inverse||mse"
    each = {key: values} | ({} if people is None else {f"{key}|person": people})
    each |= {} if rows is None else {f"{key}|row": rows}
    return {"point": "p", "each": each}, {"attack": "inverse", "target": None, "metric": "mse"}


def test_difference_over_the_same_victims_is_paired() -> None:
    rng = np.random.default_rng(0)
    common, gain = rng.normal(size=500), 0.1 + 0.01 * rng.normal(size=500)
    value, (low, high) = difference(result(common + gain), result(common))
    assert value == pytest.approx(0.1, abs=0.01)
    assert 0.09 < low < value < high < 0.11  # two intervals of ±0.09 would have said nothing


def test_ratio_over_the_same_victims_is_paired() -> None:
    rng = np.random.default_rng(0)
    common = rng.uniform(0.5, 1.5, size=500)
    value, (low, high) = ratio(result(2.0 * common), result(common))
    assert (value, low, high) == pytest.approx((2.0, 2.0, 2.0))


def test_quotient_of_different_victims_has_the_spread_of_both() -> None:
    rng = np.random.default_rng(0)
    draws = rng.normal(2.0, 0.1, 20_000) / rng.normal(1.0, 0.03, 20_000)
    ours = {"value": 2.0, "ci": [2.0 - 0.196, 2.0 + 0.196]}
    theirs = {"value": 1.0, "ci": [1.0 - 0.0588, 1.0 + 0.0588]}
    value, ends = quotient(({}, ours), ({}, theirs))
    assert value == 2.0
    assert ends == pytest.approx(np.percentile(draws, [2.5, 97.5]), abs=0.03)
    value, (low, high) = remainder(({}, ours), ({}, theirs))
    assert value == 1.0 and (high - low) / 2 == pytest.approx((0.196**2 + 0.0588**2) ** 0.5)


def test_pairs_of_one_person_count_as_one() -> None:
    rng = np.random.default_rng(0)
    people = np.repeat(np.arange(10), 50)
    gain = rng.normal(size=10)[people]
    _, alone = difference(result(gain), result(np.zeros(500)))
    _, by_person = difference(result(gain, people), result(np.zeros(500)))
    assert by_person[1] - by_person[0] > 3 * (alone[1] - alone[0])


def test_points_on_other_victims_are_never_paired() -> None:
    with pytest.raises(RuleBroken, match="same victims"):
        difference(result(np.zeros(3)), result(np.zeros(4)))


def test_attacks_on_different_victims_are_compared_over_those_whom_both_saw() -> None:
    """Two attacks that see some of the victims each, as many, in other orders: pairing by place would be wrong."""
    truth = np.random.default_rng(0).normal(size=100)
    one, other = np.arange(0, 60), np.arange(99, 39, -1)
    value, (low, high) = difference(result(truth[one] + 1.0, rows=one), result(truth[other], rows=other))
    assert (value, low, high) == pytest.approx((1.0, 1.0, 1.0))
    (mine, theirs), _ = aligned(result(truth[one], rows=one), result(truth))
    assert np.array_equal(mine, truth[one]) and np.array_equal(theirs, truth[one])


def test_attacks_that_share_no_victim_are_never_paired() -> None:
    with pytest.raises(RuleBroken, match="same victims"):
        difference(result(np.zeros(5), rows=np.arange(5)), result(np.zeros(5), rows=np.arange(5, 10)))


@pytest.mark.parametrize("rows", [np.full(5, -1), np.array([0, 1, 2, 3, 7])], ids=["unknown", "too many"])
def test_victims_that_nobody_can_name_are_never_paired(rows: np.ndarray) -> None:
    with pytest.raises(RuleBroken, match="same victims"):
        difference(result(np.zeros(5)), result(np.zeros(5), rows=rows))


def test_points_of_different_seeds_are_never_paired() -> None:
    (a, score), (b, _) = result(np.zeros(5)), result(np.zeros(5))
    with pytest.raises(RuleBroken, match="same victims"):
        difference(({**a, "seed": 0}, score), ({**b, "seed": 1}, score))


def test_person_of_a_pair_is_the_person_of_its_record() -> None:
    people = np.repeat(np.arange(10), 10)
    rows = np.arange(99, -1, -1)
    _, whose = aligned(result(np.zeros(100), people[rows], rows), result(np.zeros(100), people))
    assert whose is not None and np.array_equal(whose, people[rows])


def test_interval_over_seeds_covers_seeds_and_victims() -> None:
    runs = [[Row("a", "accuracy", "higher", 0.9, value, (value - 0.01, value + 0.01))] for value in (0.8, 0.82, 0.84)]
    (row,) = over_seeds(runs)
    assert row.ours == pytest.approx(0.82)
    assert row.seeds == 3
    half = (4.302653 * 0.02 / 3**0.5) ** 2 + 0.01**2
    assert row.ci == pytest.approx((0.82 - half**0.5, 0.82 + half**0.5), abs=1e-6)


def test_one_seed_that_cannot_settle_leaves_all_unsettled() -> None:
    runs = [
        [Row("a", "x", "higher", None, 1.0, (0.9, 1.1), Asked("ran-x", "above", 0.5, unless=why))] for why in ("", "w")
    ]
    assert over_seeds(runs)[0].to_json("cpu")["verdict"] == OPEN


CLAIM = Claim("ran-x", "§1", "words", "asks")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("paper", HOLDS), ("adaptive", HOLDS)], HOLDS),
        ([("paper", HOLDS), ("adaptive", FAILS)], ADAPTIVE),
        ([("paper", FAILS), ("adaptive", HOLDS)], FAILS),
        ([("paper", OPEN), ("adaptive", FAILS)], OPEN),
        ([("paper", HOLDS), ("adaptive", OPEN)], OPEN),
        ([("adaptive", FAILS)], OPEN),
        ([("adaptive", HOLDS)], HOLDS),
        ([("adaptive", OPEN)], OPEN),
        ([("adaptive", HOLDS), ("adaptive", FAILS)], OPEN),
        ([("paper", HOLDS)], HOLDS),
        ([("paper", FAILS), ("adaptive", FAILS)], FAILS),
        ([("paper", HOLDS), ("paper", OPEN)], OPEN),
        ([("paper", HOLDS), ("paper", FAILS)], FAILS),
        ([("paper", HOLDS), ("adaptive", HOLDS), ("adaptive", FAILS)], ADAPTIVE),
    ],
)
def test_status_of_a_claim_follows_from_its_rows(rows: list[tuple[str, str]], expected: str) -> None:
    stored = [{"claim": "ran-x", "setting": setting, "verdict": one} for setting, one in rows]
    (status,) = statuses(CLAIM, [{"data": "mnist", "rows": stored}])
    assert (status.status, status.data) == (expected, "mnist")


@pytest.mark.parametrize(
    ("rows", "remark"),
    [
        ([("adaptive", FAILS)], "an adaptive attacker breaks it; the paper's own setting was not measured"),
        ([("paper", OPEN), ("adaptive", FAILS)], "an adaptive attacker breaks it"),
        ([("paper", HOLDS), ("adaptive", OPEN)], "it holds in the paper's setting"),
        ([("paper", HOLDS), ("adaptive", FAILS)], ""),
    ],
)
def test_what_is_known_of_an_unsettled_claim_is_said(rows: list[tuple[str, str]], remark: str) -> None:
    stored = [{"claim": "ran-x", "setting": setting, "verdict": one} for setting, one in rows]
    (status,) = statuses(CLAIM, [{"data": "mnist", "rows": stored}])
    assert status.remark == remark


def test_status_is_told_apart_by_data_set() -> None:
    results = [
        {"data": data, "rows": [{"claim": "ran-x", "setting": "paper", "verdict": one}]}
        for data, one in (("mnist", HOLDS), ("har", OPEN))
    ]
    assert [(s.data, s.status) for s in statuses(CLAIM, results)] == [("mnist", HOLDS), ("har", OPEN)]


def test_claim_without_a_figure_is_not_settled_and_a_flawed_proof_is_said() -> None:
    assert statuses(CLAIM, [])[0].status == OPEN
    assert statuses(Claim("ran-x", "§1", "words", "asks", flaw="why"), [])[0].status == FLAWED


def test_claim_that_a_test_shows_has_a_status_of_its_own_and_no_other_claim_gets_it() -> None:
    shown = Claim("ran-x", "§1", "words", "asks", check="tests/x.py::test_y")
    assert statuses(shown, [])[0].status == TESTED
    assert statuses(replace(shown, studies=("ran-figure3",)), [])[0].status == OPEN, "a study has yet to be run"
    assert statuses(replace(shown, flaw="why"), [])[0].status == FLAWED
    stored = [{"claim": "ran-x", "setting": "paper", "verdict": FAILS}]
    assert statuses(shown, [{"data": "mnist", "rows": stored}])[0].status == FAILS
