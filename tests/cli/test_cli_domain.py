"""``--domain`` and ``data domain``: declared ranges from the draft to the run that can be repeated."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pyarrow.parquet as pq
from desk import PEOPLE, QUICK, Call

ROLES = ("--utility", "income", "--private", "sex")


def corrected(draft: str) -> str:
    """As its owner would leave it."""
    assert "\ndraft = true\n" in draft
    return draft.replace("draft = true\n", "")


def test_a_draft_can_be_used_and_the_run_can_be_repeated(desk: Path, call: Call) -> None:
    drafted = call("data", "domain", "people.csv", *ROLES)
    assert drafted.code == 0 and drafted.out.startswith("# A draft of the domain of people, READ FROM ITS RECORDS")
    (desk / "domain.toml").write_text(corrected(drafted.out))
    assert call("data", "check", "people.csv", *ROLES, "--domain", "domain.toml").code == 0
    fit = ("fit", "ran", *PEOPLE, *QUICK, "-q")
    assert call(*fit, "--domain", "domain.toml", "--out", "declared").code == 0
    assert tomllib.loads((desk / "declared" / "config.toml").read_text())["data"]["domain"] == "domain.toml"
    assert json.loads((desk / "declared" / "schema.json").read_text())["declared"] is True
    assert call("fit", "--config", "declared/config.toml", "-q", "--out", "again").code == 0
    assert (desk / "again" / "schema.json").read_text() == (desk / "declared" / "schema.json").read_text()


def test_a_record_outside_the_domain_stops_check_and_fit_alike(desk: Path, call: Call) -> None:
    text = call("data", "domain", "people.csv", *ROLES).out
    low = next(line for line in text.splitlines() if line.startswith("low = "))
    (desk / "narrow.toml").write_text(text.replace(low, "low = 60"))
    for command in (("data", "check", "people.csv", *ROLES), ("fit", "ran", *PEOPLE, "-q", "--out", "new")):
        ended = call(*command, "--domain", "narrow.toml")
        assert ended.code == 3 and "lies outside the declared range 60" in ended.out + ended.err
        assert "column 'age', line 4" in ended.out + ended.err and not (desk / "new").exists()


def test_a_domain_that_is_missing_or_wrong_ends_in_one_sentence(desk: Path, call: Call) -> None:
    (desk / "wrong.toml").write_text('[columns.age]\nkind = "numeric"\nlow = 9\nhigh = 1\n')
    for file, words in (("nowhere.toml", "does not exist"), ("wrong.toml", "[columns.age]: low = 9 and high = 1")):
        ended = call("fit", "ran", *PEOPLE, "--domain", file, "-q", "--out", "new")
        assert ended.code == 3 and words in ended.err and ended.err.count("\n") == 1


def test_synth_refuses_a_table_until_its_domain_is_declared(desk: Path, call: Call) -> None:
    fit = ("fit", "synth", *PEOPLE, "--set", "epsilon=8", "-q", "--out", "new")
    ended = call(*fit)
    assert ended.code == 3 and "sfumato data domain" in ended.err and "--domain domain.toml" in ended.err
    assert not (desk / "new").exists()
    drafted = call("data", "domain", "people.csv", *ROLES).out
    (desk / "domain.toml").write_text(drafted)  # as it was read from the records: nobody has declared anything
    ended = call(*fit, "--domain", "domain.toml")
    assert ended.code == 3 and "delete its line draft = true" in ended.err and not (desk / "new").exists()
    (desk / "domain.toml").write_text(corrected(drafted))
    assert call(*fit, "--domain", "domain.toml").code == 0
    assert call("release", "new", "--unaudited", "--rows", "50", "--out", "drawn").code == 0
    drawn = pq.read_table(desk / "drawn" / "release.parquet")
    assert drawn.num_rows == 50 and set(drawn.column_names) == {"age", "height", "job", "income"}
    assert set(drawn.column("income").to_pylist()) <= {"low", "high"}
