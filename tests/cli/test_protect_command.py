"""``sfumato protect`` and ``sfumato explain`` as typed: bad input is one sentence, a goal out of reach is exit 4."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from desk import Call

DIGITS = ("digits", "--utility", "odd", "--private", "ge5", "--limit", "400")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--max", "attribute=110%", "--min", "accuracy=0.7"], "leakage lies between 0% and 100%"),
        (["--max", "atribute=10%", "--min", "accuracy=0.7"], "did you mean 'attribute'"),
        (["--max", "attribute=10%", "--min", "accuracy=1.7"], "accuracy lies between 0 and 1"),
        (["--max", "attribute=10%", "--max", "attribute=20%", "--min", "accuracy=0.7"], "given twice"),
        (["--max", "attribute=10%", "--min", "accuracy=0.7", "--within", "soon"], "write a time such as 90s"),
        (["--max", "epsilon=3", "--min", "accuracy=0.7"], "needs a proof"),
    ],
)
def test_a_wrong_limit_is_one_sentence(words: list[str], sentence: str, tmp_path: Path, call: Call) -> None:
    result = call("protect", *DIGITS, *words, "--out", str(tmp_path / "out"))
    assert result.code == 2 and sentence in result.err and result.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_policy_that_extends_itself_is_one_sentence(tmp_path: Path, call: Call) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('version = 1\nextends = "policy.toml"\n')
    result = call("protect", *DIGITS, "--policy", str(file), "--out", str(tmp_path / "out"))
    assert result.code == 2 and "extends itself" in result.err


def test_explain_says_what_fits_and_what_the_label_tells(call: Call) -> None:
    result = call("explain", *DIGITS, "--max", "attribute=10%", "--min", "accuracy=0.9", "--json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert found["floors"][0]["utility"] == "odd" and found["floors"][0]["private"] == "ge5"
    fits = {one["mechanism"] for one in found["advice"] if one["fits"]}
    why = {one["mechanism"]: one["why_not"] for one in found["advice"] if not one["fits"]}
    assert {"filter", "ars"} <= fits and "Attribute" in why["ran"]


def test_a_limit_below_the_floor_is_exit_4_before_anything_is_trained(tmp_path: Path, call: Call) -> None:
    words = ["--labels", "--max", "attribute=5%", "--min", "accuracy=0.9", "--json", "--quiet"]
    circle = ("digits", "--utility", "circle", "--private", "ge5")
    result = call("protect", *circle, *words, "--out", str(tmp_path / "out"))
    assert result.code == 4, result.err
    found = json.loads(result.out)
    floor = found["floors"][0]
    assert found["cost"]["fits"] == 0 and floor["leakage"] > 0.05
    assert found["relax"][0]["limit"].startswith("max attribute") and "no mechanism can keep" in result.err
