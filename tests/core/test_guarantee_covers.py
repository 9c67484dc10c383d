"""What a guarantee covers and rests on is data; what is broken is not promised."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sfumato.core.errors import RuleBroken
from sfumato.core.guarantee import NOTHING, ONE_ROW, SECURE_NOISE, Condition, Covers, Guarantee, empirical

PROOF = Guarantee(
    "dp",
    "Proven.",
    epsilon=1.0,
    delta=1e-5,
    relation="replace one record",
    event={"gaussian": 1},
    conditions=(SECURE_NOISE, ONE_ROW, Condition("public", "the fit is public")),
    covers=Covers(count=True),
)
OLD: dict[str, Any] = {
    "kind": "dp",
    "statement": "",
    "epsilon": 1.0,
    "delta": 0.1,
    "relation": "one",
    "event": {"g": 1},
}


def test_guarantee_is_read_back_from_json_as_it_was() -> None:
    for guarantee in (PROOF, PROOF.beside(["income"]), PROOF.without({"one-row": "two rows"}), empirical("Measured.")):
        assert Guarantee.from_json(json.loads(json.dumps(guarantee.to_json()))) == guarantee


def test_older_guarantee_covers_the_least_and_assumes_its_conditions() -> None:
    found = Guarantee.from_json({**OLD, "conditions": ["used once"]})
    assert found.covers == Covers(labels=False, count=False, unit="record", repeats=False, later=False)
    assert found.conditions == (Condition("", "used once", checked=False),)
    assert Guarantee.from_json({"kind": "empirical", "statement": "Measured."}).covers == NOTHING


def test_broken_condition_leaves_nothing_promised_and_the_reason_first() -> None:
    left = PROOF.without({"one-row": "somebody has two rows"})
    assert (left.kind, left.epsilon, left.covers) == ("empirical", None, NOTHING)
    assert left.warnings == ("NOT PROMISED: somebody has two rows.",)
    assert [condition.broken for condition in left.conditions] == ["", "somebody has two rows", ""]
    assert PROOF.without({}) is PROOF


def test_condition_that_nobody_stated_cannot_be_broken() -> None:
    with pytest.raises(RuleBroken, match="no condition 'absent'"):
        PROOF.without({"absent": "why"})


def test_proof_covers_something_and_measurement_nothing() -> None:
    with pytest.raises(RuleBroken, match="covers something"):
        replace(PROOF, covers=NOTHING)
    with pytest.raises(RuleBroken, match="covers nothing"):
        replace(empirical("Measured."), covers=Covers())
    with pytest.raises(RuleBroken, match="promises nothing"):
        replace(PROOF, conditions=(replace(ONE_ROW, broken="two rows"),))


def test_labels_beside_a_promise_that_leaves_them_out_are_in_clear() -> None:
    assert PROOF.beside(["income"]).warnings[0].startswith("LABELS ARE OUTSIDE THE PROMISE: 'income'")
    assert PROOF.beside(["income"]).relation == "replace one record, with the same labels"
    assert replace(PROOF, covers=Covers(labels=True)).beside(["income"]).warnings == ()
    assert empirical("Measured.").beside(["income"]).in_clear == ()


def test_rows_of_a_release_can_be_counted() -> None:
    assert PROOF.covers.count and not PROOF.of_release().covers.count


def test_what_is_covered_and_what_is_not_is_said() -> None:
    said = str(Covers(repeats=True, unit="person"))
    assert said.startswith(
        "the payload, the same records released again, for one person at a time. Not covered: labels"
    )
