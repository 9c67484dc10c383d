"""Who is worst off: groups are compared fairly, and by chance hardly any is called worse than the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.auditing.exposure import FEWEST, SMALLER, Attempt, exposures
from sfumato.core.dataset import Dataset
from sfumato.core.score import Score

PEOPLE = 150


def audited(seed: int, *, errors: bool = False, worse: float = 0.0, records: int = 1, people: int = PEOPLE) -> Any:
    """The exposure of people in groups a (of six sizes) and b; those with a = 2 leak more by ``worse``."""
    rng = np.random.default_rng(seed)
    count = people * records
    a = np.repeat(rng.choice(6, people, p=[0.35, 0.25, 0.2, 0.12, 0.05, 0.03]), records)
    ids = np.repeat(np.arange(people), records)
    data = Dataset.from_arrays(
        rng.random((count, 3)), utility={"a": a}, private={"b": rng.integers(0, 2, count)}, ids=ids
    )
    habit = np.repeat(rng.beta(1, 9, people), records)
    if errors:
        guessed = rng.gamma(2.0, 0.02, count)
        each, control = guessed * np.clip(1 - habit - worse * (a == 2) + rng.normal(0, 0.1, count), 0, None), 0.0
    else:
        guessed = np.full(count, 0.01)
        each, control = (rng.random(count) < habit + worse * (a == 2)).astype(np.float64), 1.0
    score = Score(
        attack="some",
        threat="reconstruction" if errors else "reidentification",
        metric="mse" if errors else "rate",
        better_for_owner="higher" if errors else "lower",
        value=float(each.mean()),
        ci=(-9.0, 9.0),
        baseline=float(guessed.mean()),
        control=control,
        n=count,
        seconds=0.0,
        primary=True,
        each=each,
        guessed=guessed,
        whose=data.ids,
    )
    without = each[rng.permutation(count)] if not errors else guessed
    attempt = Attempt.on(data, {score.metric: without})
    return exposures([score], {("some", None): attempt}, seed)[score.threat]


@pytest.mark.parametrize(("errors", "records"), [(False, 1), (True, 2)])
def test_where_groups_do_not_differ_one_is_called_worse_in_at_most_one_of_twenty_audits(
    errors: bool, records: int
) -> None:
    false = sum(any(one["worse"] for one in audited(s, errors=errors, records=records)["groups"]) for s in range(200))
    assert false <= 10


@pytest.mark.parametrize("errors", [False, True])
def test_a_group_that_leaks_more_is_found(errors: bool) -> None:
    found = audited(1, errors=errors, worse=0.5, people=400)
    assert [one["value"] for one in found["groups"] if one["worse"]] == ["2"]
    assert (found["worst_group"]["column"], found["worst_group"]["value"]) == ("a", "2")
    assert found["worst_group"]["leakage_ci"][0] > 0.3


def test_small_groups_are_pooled_or_left_out_and_every_figure_is_a_share() -> None:
    found = audited(0, people=300)
    counted = {one["value"]: one["people"] for one in found["groups"] if one["column"] == "a"}
    assert min(counted.values()) >= FEWEST
    assert SMALLER in {one["value"] for s in range(5) for one in audited(s, people=300)["groups"]}
    for one in found["groups"]:
        low, high = one["leakage_ci"]
        assert 0 <= low <= one["leakage"] <= high <= 1


def test_the_most_exposed_records_and_the_share_above_follow_from_each_record() -> None:
    found = audited(3, errors=True, worse=0.6)
    leaked = [one["leakage"] for one in found["most_exposed"]]
    assert len(leaked) == 10
    assert leaked == sorted(leaked, reverse=True)
    above = found["share_above"]
    assert above["ci"][0] <= above["share"] <= above["ci"][1]
    assert above["people"] == PEOPLE


def test_intervals_of_all_groups_hold_together() -> None:
    """The leakage of everybody, 10 %, lies in all intervals of an audit in 95 % of audits."""
    held = sum(
        all(
            one["leakage_ci"][0] <= (0.1 - 0.01) / 0.99 <= one["leakage_ci"][1]
            for one in audited(s, people=300)["groups"]
        )
        for s in range(60)
    )
    assert held >= 54
