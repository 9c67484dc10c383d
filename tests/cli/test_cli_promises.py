"""What leaves with a promise: from two files through the commands to the card."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from desk import HEADER, PEOPLE, QUICK, Call, people, write_csv

WITH_IDS = ("--data", "twice.csv", "--utility", "income", "--private", "sex", "--id", "who")


@pytest.fixture
def gaussian(desk: Path, call: Call) -> Path:
    """A run of `gaussian` on the people."""
    assert call("fit", "vae", *PEOPLE, *QUICK, "--out", "vae", "-q").code == 0
    assert call("fit", "gaussian", "--utility", "income", "--base", "vae", "--out", "gaussian", "-q").code == 0
    return desk


def test_labels_outside_a_promise_leave_only_when_that_is_said(gaussian: Path, call: Call) -> None:
    refused = call("release", "gaussian", "--unaudited", "-d", "people.csv", "--labels", "--out", "r")
    assert refused.code == 2 and "does not cover labels" in refused.err and "--labels-unprotected" in refused.err
    assert not (gaussian / "r").exists()
    told = call("release", "gaussian", "--unaudited", "-d", "people.csv", "--labels-unprotected", "--out", "r")
    assert told.code == 0 and "\nLABELS ARE OUTSIDE THE PROMISE: 'income'" in told.out
    card = json.loads((gaussian / "r" / "release.json").read_text())
    assert list(card)[:2] == ["unaudited", "warnings"] and "OUTSIDE THE PROMISE" in card["warnings"][0]
    assert "No audit attacked these labels" in card["warnings"][1]
    assert card["guarantee"]["kind"] == "dp" and not card["guarantee"]["covers"]["labels"]
    assert pq.read_schema(gaussian / "r" / "release.parquet").names == ["payload", "income"]


def test_release_tells_what_is_covered_and_every_condition(gaussian: Path, call: Call) -> None:
    ended = call("release", "gaussian", "--unaudited", "-d", "people.csv", "--out", "r")
    assert "covers: the payload, for one record at a time. Not covered: labels" in ended.out
    assert "from a seed [checked at every release]" in ended.out and "count as public" in ended.out
    assert json.loads((gaussian / "r" / "release.json").read_text())["warnings"] == []


def test_promise_for_one_row_is_not_made_to_somebody_with_two(desk: Path, call: Call) -> None:
    rows = [[*row, f"p{i % 45}"] for i, row in enumerate(people())]
    write_csv(desk / "twice.csv", rows, (*HEADER, "who"))
    write_csv(desk / "once.csv", rows[:45], (*HEADER, "who"))
    assert call("fit", "vae", *WITH_IDS, *QUICK, "--out", "vae", "-q").code == 0
    assert call("fit", "gaussian", "--utility", "income", "--base", "vae", "--out", "gaussian", "-q").code == 0
    card = call("release", "gaussian", "--unaudited", "-d", "twice.csv", "--out", "twice", "--json").json()
    assert card["guarantee"]["kind"] == "empirical" and card["guarantee"]["epsilon"] is None
    assert card["warnings"] == ["NOT PROMISED: somebody has several rows in it, and the promise is for one row."]
    assert (
        call("release", "gaussian", "--unaudited", "-d", "once.csv", "--out", "once", "--json").json()["guarantee"][
            "kind"
        ]
        == "dp"
    )
