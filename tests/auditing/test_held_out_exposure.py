"""Who is worst off in a release of rows: the group that was copied, its members, and nobody where nothing was."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato import audit_release
from sfumato.attacks.copies.copied_rows import ExactCopies
from sfumato.auditing import SMOKE
from sfumato.auditing.held_out_exposure import AskedPeople, held_out_exposures
from sfumato.core.policy import Policy, Threshold
from sfumato.core.score import Score
from sfumato.testing.made_up_people import made_up_people
from sfumato.workflow.gate import gate_folder

PEOPLE = 500
QUICK = replace(SMOKE, suspects=1000, predicates=50, threats=("copies", "membership"))
Table = dict[str, Any]


@pytest.fixture(scope="module")
def tables() -> tuple[Table, Table, Table]:
    """The owner's people, held-out ones, and a release that holds the owner's men and women of elsewhere."""
    owner, holdout, nobody = (made_up_people(PEOPLE, seed) for seed in range(3))
    men = owner["sex"] == "m"
    return owner, holdout, {name: np.where(men, values, nobody[name]) for name, values in owner.items()}


def test_the_copied_group_and_its_members_are_worst_off(tables: tuple[Table, Table, Table], tmp_path: Path) -> None:
    owner, holdout, release = tables
    found = audit_release(
        release, owner=owner, holdout=holdout, private=["sex", "age"], effort=QUICK, out=tmp_path / "run"
    )
    for question in ("copies", "membership"):
        exposed = found["exposure"][question]
        groups = {(one["column"], one["value"]): one for one in exposed["groups"]}
        assert groups["sex", "m"]["leakage"] > 0.8 and groups["sex", "m"]["worse"], question
        assert groups["sex", "f"]["leakage"] < 0.2 and not groups["sex", "f"]["worse"], question
        assert exposed["worst_group"]["value"] == "m"
        for one in exposed["most_exposed"]:
            row = int(one["id"].removeprefix("owner, row ")) - 1
            assert owner["sex"][row] == "m" and one["leakage"] > 0.7, question
        assert len(exposed["most_exposed"]) == 10
    ages = {one["value"] for one in found["exposure"]["membership"]["groups"] if one["column"] == "age"}
    assert ages == {f"{which} quarter" for which in ("lowest", "second", "third", "highest")}
    assert 0.35 < found["exposure"]["copies"]["share_above"]["share"] < 0.65
    limits = Policy(thresholds=(Threshold("max-group", "copies", 0.5, share=True),))
    verdict = gate_folder(tmp_path / "run", limits)
    assert not verdict.passed and "sex = m" in verdict.checks[0].because


def test_nobody_is_worst_off_where_nothing_leaks(tables: tuple[Table, Table, Table]) -> None:
    owner, holdout, _ = tables
    found = audit_release(made_up_people(PEOPLE, 9), owner=owner, holdout=holdout, private=["sex"], effort=QUICK)
    for question, exposed in found["exposure"].items():
        assert exposed["groups"], question
        for one in exposed["groups"]:
            assert one["ci"][0] <= 0.0 <= one["ci"][1] and not one["worse"], question
        assert exposed["share_above"]["share"] == 0.0, question
        assert exposed["attack"] != "copy-rare", "which asks a quarter of the people alone"


def test_by_chance_hardly_any_group_of_a_real_audit_is_called_worse() -> None:
    """Releases of other people and of everybody: nobody is worse off than the rest, by whichever attack."""
    quick = replace(QUICK, threats=("copies", "membership"), suspects=240)
    wrong = 0
    for seed in range(6):
        owner, holdout, nobody = (made_up_people(120, 50 + 3 * seed + part) for part in range(3))
        for release in (nobody, {name: values[::-1] for name, values in owner.items()}):
            found = audit_release(
                release, owner=owner, holdout=holdout, private=["sex", "age"], effort=quick, seed=seed
            )
            groups = [one for exposed in found["exposure"].values() for one in exposed["groups"]]
            assert len(groups) >= 4
            wrong += any(one["worse"] for one in groups)
    assert wrong <= 1


def asked(values: list[float], members: list[int], classes: list[int]) -> AskedPeople:
    ids = np.array([f"p{row}" for row in range(len(values))])
    labels = {"sex": (("f", "m"), np.array(classes))}
    return AskedPeople(np.array(values), np.array(members) == 1, ids, labels)


def copied(control: float) -> Score:
    return Score(
        "copy-exact", "copies", "excess", "lower", 0.5, (0.4, 0.6), 0.0, control, 80, 0.0, primary=True, leakage=0.5
    )


def test_a_group_is_compared_with_strangers_of_the_same_group() -> None:
    """All women's records stand in the release, but so do those of all women who were never in the data."""
    classes = [0] * 20 + [1] * 20
    people = asked([1.0] * 20 + [0.0] * 20 + [1.0] * 20 + [0.0] * 20, [1] * 40 + [0] * 40, classes * 2)
    found = held_out_exposures([copied(1.0)], {("copy-exact", None): people})["copies"]
    assert [one["leakage"] for one in found["groups"]] == [0.0, 0.0]
    assert found["share_above"]["share"] == 0.0


def test_membership_of_a_group_is_told_from_strangers_of_the_group() -> None:
    """Men are all recognised, and so are women, though strangers among the women look more like members."""
    score = replace(copied(1.0), attack="member", threat="membership", metric="advantage")
    values = [1.0] * 40 + [0.2] * 20 + [0.8] * 20
    people = asked(values, [1] * 40 + [0] * 40, ([0] * 20 + [1] * 20) * 2)
    found = held_out_exposures([score], {("member", None): people})["membership"]
    assert [(one["leakage"], one["score"], one["worse"]) for one in found["groups"]] == [(1.0, 1.0, False)] * 2


def test_who_was_not_asked_counts_nowhere_and_small_groups_are_left_out() -> None:
    values = [1.0] * 30 + [np.nan] * 10 + [0.0] * 40
    people = asked(values, [1] * 40 + [0] * 40, [0] * 25 + [1] * 15 + [0] * 25 + [1] * 15)
    found = held_out_exposures([copied(1.0)], {("copy-exact", None): people})["copies"]
    assert [(one["value"], one["people"]) for one in found["groups"]] == [("f", 25)]
    assert found["share_above"]["people"] == 30 and found["share_above"]["share"] == 1.0


def test_an_interrupted_audit_goes_on_and_runs_other_versions_again(
    tables: tuple[Table, Table, Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, holdout, release = tables
    options: dict[str, Any] = {"owner": owner, "holdout": holdout, "private": ["sex"], "effort": QUICK}
    whole = audit_release(release, **options)

    def stopped(said: str, after: str) -> None:
        if after in said:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit_release(release, **options, out=tmp_path / "run", say=lambda said: stopped(said, "copy-near"))
    kept = tmp_path / "run" / "checkpoint" / "attacks"
    assert json.loads((kept / "copy-exact.json").read_text())["scores"]
    monkeypatch.setattr(ExactCopies, "version", 3)
    said: list[str] = []
    found = audit_release(release, **options, out=tmp_path / "run", say=said.append)
    run = [line.rpartition(" ")[2] for line in said]
    assert "copy-exact" in run and "copy-near" in run and "copy-rare" not in run
    assert {s["attack_version"] for s in found["attacks"] if s["attack"] == "copy-exact"} == {3}
    assert found["exposure"] == whole["exposure"]
