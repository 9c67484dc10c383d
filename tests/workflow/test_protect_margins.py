"""Margins, steps, costs and floors of ``protect``: arithmetic that a release hangs on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.core.dataset import Dataset, Splits
from sfumato.core.errors import UsageError
from sfumato.core.policy import policy_of
from sfumato.mechanisms import mechanism_class
from sfumato.mechanisms.registry import names
from sfumato.mechanisms.search_space import KnobRange
from sfumato.workflow.gate import Check
from sfumato.workflow.protect.candidate_search import Attempted, ranked
from sfumato.workflow.protect.candidate_ways import Candidate, Way
from sfumato.workflow.protect.goal import goal_of
from sfumato.workflow.protect.label_floors import beyond_reach, check_follows, label_floors
from sfumato.workflow.protect.margins import standing
from sfumato.workflow.protect.outcome import relaxed
from sfumato.workflow.protect.time_limit import HARDER, Costs, as_text, seconds_of


def score(metric: str, value: float, ci: tuple[float, float], **more: Any) -> dict[str, Any]:
    higher = "higher" if metric == "accuracy" else "lower"
    told = {"metric": metric, "value": value, "ci": list(ci), "better_for_owner": higher, "target": "odd"}
    stored = {
        "attack": "probe",
        "threat": "attribute",
        "baseline": 0.5,
        "control": None,
        "primary": True,
        "follows": None,
    }
    return {**stored, **told, "leakage": None, "leakage_ci": None, "n": 100, "seconds": 0.0, **more}


def scores(accuracy: float, leakage: float, width: float) -> dict[str, Any]:
    ends = (max(0.0, leakage - width), leakage + width)
    attack = score("advantage", leakage / 2, (0.0, 0.5), target="ge5", leakage=leakage, leakage_ci=list(ends))
    useful = score("accuracy", accuracy, (accuracy - width, accuracy + width), threat="utility")
    guarantee = {"kind": "empirical", "statement": "measured"}
    told = {"utility": [useful], "worst": {"attribute:ge5": attack}, "attacks": [attack], "skipped": []}
    return {**told, "guarantee": guarantee, "traits": {}, "exposure": {}}


POLICY = policy_of(["attribute=20%"], ["accuracy=0.7"])


def test_the_gate_counts_the_unfavourable_end_and_the_search_sees_the_figure() -> None:
    wide = standing(scores(0.8, 0.15, 0.1), POLICY)
    assert wide.near and not wide.passed and wide.strict == pytest.approx(0.05)
    assert wide.excess == pytest.approx(-0.05) and [check.asked for check in wide.missed] == ["max attribute:ge5 = 20%"]
    assert standing(scores(0.8, 0.15, 0.04), POLICY).passed
    assert standing(scores(0.8, 0.5, 0.1), POLICY).hopeless and not wide.hopeless


def attempted(number: int, accuracy: float, leakage: float, width: float = 0.02, stage: str = "cheap") -> Attempted:
    way = Way("noisy", mechanism_class("noisy").searched[0])
    found = standing(scores(accuracy, leakage, width), POLICY)
    outcome = {"state": "audited", "stage": stage, "standing": found.to_json()}
    return Attempted(number, Candidate(way, {"noise": float(number)}), Path("nowhere"), outcome)


def test_the_most_useful_that_passes_wins_and_of_equals_the_safer_one() -> None:
    safe, useful, equal, leaking = (
        attempted(0, 0.75, 0.01),
        attempted(1, 0.90, 0.15),
        attempted(2, 0.895, 0.05),
        attempted(3, 0.99, 0.60),
    )
    assert [one.number for one in ranked([safe, useful, equal, leaking])] == [2, 1, 0, 3]


def test_what_was_audited_at_full_effort_comes_before_what_was_not() -> None:
    assert ranked([attempted(0, 0.9, 0.05), attempted(1, 0.8, 0.05, stage="full")])[0].number == 1


def test_the_smallest_step_that_would_do_alone_comes_first() -> None:
    share = Check("max attribute:sex = 10%", "failed", "", 0.163, 0.10, True)
    useful = Check("min accuracy:odd = 0.9", "failed", "", 0.8234, 0.9)
    steps = relaxed([("a", [share, useful]), ("b", [useful])])
    assert [(one.limit, one.to, one.alone) for one in steps] == [
        ("min accuracy:odd = 0.9", "0.823", True),
        ("max attribute:sex = 10%", "17%", False),
    ]


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("15m", 900), ("1.5h", 5400), ("20", 20), ("2 min", 120)])
def test_times_are_read(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5m", "0s", "5 days"])
def test_other_texts_are_no_time(text: str) -> None:
    with pytest.raises(UsageError, match="write a time such as"):
        seconds_of(text)


def test_costs_are_known_from_what_was_done() -> None:
    costs = Costs()
    assert costs.of("ars") == 0.0
    costs.note("ars", 10.0, 4.0)
    costs.note("noisy", 1.0, 2.0)
    assert costs.of("noisy") == 3.0 and costs.of("filter") == 14.0
    assert costs.harder(same=True) == 3.0 and costs.harder(same=False) == 3.0 * HARDER
    assert as_text(0.4) == "1s" and as_text(200) == "4m"


def test_every_declared_search_space_is_of_declared_parameters_within_their_ranges() -> None:
    for name in names():
        kind = mechanism_class(name)
        for space in kind.searched:
            for settings in (*Way(name, space).settings, *Way(name, space).grid(2)):
                fresh = kind().set_params(**space.fixed, **settings)
                if not Way(name, space).spends:  # which needs an extra
                    fresh._check_params()
            assert set(space.knobs) <= set(kind.declared()) and not set(space.knobs) & set(space.fixed)


def test_a_range_is_spaced_by_ratios_or_by_differences() -> None:
    assert KnobRange(1.0, 100.0, log=True).spaced(3) == pytest.approx((1.0, 10.0, 100.0))
    assert KnobRange(2, 4, whole=True).spaced(3) == (2.0, 3.0, 4.0)


def labelled(n: int, agree: float, seed: int) -> Dataset:
    rng = np.random.default_rng(seed)
    useful = rng.integers(2, size=n)
    hidden = np.where(rng.random(n) < agree, useful, 1 - useful)
    return Dataset.from_arrays(rng.random((n, 3)), utility={"u": useful}, private={"p": hidden}, name=f"part {seed}")


def split(agree: float) -> Splits:
    return Splits(*(labelled(4000, agree, seed) for seed in range(3)))


def test_a_floor_is_what_the_useful_label_tells_less_the_errors_that_are_allowed() -> None:
    goal = goal_of(policy_of(["attribute=10%"], ["accuracy=0.9"]), {"source": "made up"})
    (floor,) = label_floors(split(0.8), goal)
    assert floor.accuracy == pytest.approx(0.8, abs=0.02) and floor.guessing == pytest.approx(0.5, abs=0.02)
    assert floor.least == pytest.approx(0.7, abs=0.02) and floor.leakage == pytest.approx(0.4, abs=0.05)
    assert floor.sure_leakage < floor.leakage
    (limit, least, _), *_ = beyond_reach((floor,), goal.policy)
    assert limit == "max attribute = 10%" and 0.3 < least < 0.4
    assert not list(beyond_reach((floor,), policy_of(["attribute=50%"], ["accuracy=0.9"])))


def test_a_label_that_leaves_tells_all_that_it_tells() -> None:
    goal = goal_of(policy_of(["attribute=10%"], ["accuracy=0.5"]), {"source": "made up"})
    kept, leaving = (label_floors(split(0.8), one)[0] for one in (goal, goal_of(goal.policy, goal.data, labels=True)))
    assert kept.leakage < 0.02 and leaving.leakage == pytest.approx(0.6, abs=0.05)


def test_a_private_label_that_follows_is_refused() -> None:
    goal = goal_of(policy_of(["attribute=10%"], ["accuracy=0.9"]), {"source": "made up"})
    with pytest.raises(UsageError, match="'p' follows from 'u'"):
        check_follows(label_floors(split(1.0), goal), goal.policy)
