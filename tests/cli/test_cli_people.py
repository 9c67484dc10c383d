"""Whose row is protected, on the command line: with and without the column that names people."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from desk import Call, write_csv

from sfumato.privacy import query_counter

DOMAIN = """
columns.age = {kind = "numeric", low = 0, high = 9, integer = true}
columns.y = {kind = "categorical", categories = ["n", "y"]}
"""
FIT = ("fit", "synth", "--data", "visits.csv", "--utility", "y", "--x", "age", "--domain", "domain.toml")
QUICK = ("--set", "epsilon=5", "--set", "steps=1")


@pytest.fixture
def visits(desk: Path) -> Path:
    """Patients with three visits each."""
    rng = np.random.default_rng(0)
    rows = [[f"p{i // 3}", str(rng.integers(10)), "ny"[rng.integers(2)]] for i in range(900)]
    write_csv(desk / "visits.csv", rows, ("patient_id", "age", "y"))
    (desk / "domain.toml").write_text(DOMAIN)
    return desk


def test_without_an_id_the_row_is_protected_and_a_column_of_people_is_pointed_out(visits: Path, call: Call) -> None:
    ended = call(*FIT, *QUICK, "--out", "mine")
    assert ended.code == 0 and "for one record at a time" in " ".join(ended.out.split())
    said = " ".join(ended.err.split())
    assert "column 'patient_id': looks like an id, with 300 values in 900 rows" in said and "--id" in said


def test_with_an_id_the_person_is_protected(visits: Path, call: Call) -> None:
    ended = call(*FIT, *QUICK, "--id", "patient_id", "--out", "mine")
    assert ended.code == 0 and "for one person at a time" in " ".join(ended.out.split())
    assert "looks like an id" not in ended.err
    assert "one person with all their records" in (visits / "mine" / "budget.json").read_text()


def test_check_points_out_a_column_of_people(visits: Path, call: Call) -> None:
    check = ("data", "check", "visits.csv", "--utility", "y", "--x", "age")
    assert "column 'patient_id': looks like an id" in " ".join(call(*check).out.split())
    assert "looks like an id" not in call(*check, "--id", "patient_id").out


def test_shares_are_typed_or_configured(visits: Path, call: Call) -> None:
    usual = call(*FIT, *QUICK, "--out", "usual", "--json").json()["config"]
    assert usual["data"]["shares"] == [0.9]
    typed = call(*FIT, *QUICK, "--shares", "0.5,0.3,0.2", "--out", "typed", "--json").json()["config"]
    assert typed["data"]["shares"] == [0.5, 0.3, 0.2]
    again = call("fit", "--config", "typed/config.toml", "--out", "again", "--json").json()["config"]
    assert again["data"] == typed["data"]
    for wrong in ("0.5,0.5,0.5", "much", "1.5"):
        ended = call(*FIT, "--shares", wrong, "--out", "wrong")
        assert ended.code == 2 and "shares" in ended.err and not (visits / "wrong").exists()


def test_interrupted_run_does_not_go_on_with_other_labels(
    visits: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(query_counter, "write_tensors_once", stopped)
        assert call(*FIT, *QUICK, "--id", "patient_id", "--out", "mine", "-q").code == 130
    head, *rows = (visits / "visits.csv").read_text().splitlines()
    other = [row.translate(str.maketrans("ny", "yn")) for row in rows]
    (visits / "visits.csv").write_text("\n".join([head, *other]))
    ended = call(*FIT, *QUICK, "--id", "patient_id", "--out", "mine", "--resume", "-q")
    assert ended.code == 3 and "the data have changed" in ended.err


def test_a_second_private_fit_says_what_the_first_spent_and_a_cap_stops_the_third(visits: Path, call: Call) -> None:
    assert "spent" not in call(*FIT, *QUICK, "--out", "a").err
    second = call(*FIT, *QUICK, "--out", "b")
    assert "1 private fit or release before this one spent ε = 5" in " ".join(second.err.split())
    shown = call("data", "budget", "visits.csv", "--cap", "12", "--json").json()
    assert (shown["epsilon"], shown["cap"], len(shown["spent"])) == (10.0, 12.0, 2)
    third = call(*FIT, *QUICK, "--out", "c")
    assert third.code == 4 and "beyond the cap of 12" in third.err and not (visits / "c").exists()
    assert "ε = 10" in call("data", "budget", "visits.csv").out
    refused = call(*FIT, "--set", "steps=1", "--set", "method=noise-layer", "--set", "epsilon=1", "--out", "d")
    assert refused.code == 2 and call("data", "budget", "visits.csv", "--json").json()["epsilon"] == 10.0
    assert call("data", "budget", "mnist").code == 2 and call("data", "budget", "nowhere.csv").code == 3
