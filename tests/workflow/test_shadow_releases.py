"""Membership by releases of other people: where the maker can be called, it is called, and what it does is measured."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato import audit_release
from sfumato.auditing import SMOKE
from sfumato.core.errors import DataError, UsageError
from sfumato.data.pooled_records import PooledRecords
from sfumato.testing.made_up_people import made_up_people

QUICK = replace(SMOKE, suspects=300, threats=("membership",), shadow_releases=8)
PEOPLE = 150
BY_SHADOWS = {"member-shadow-ratio", "member-shadow-learnt"}
Table = dict[str, np.ndarray]

SCRIPT = """
import csv, random, sys
with open(sys.argv[1]) as given:
    head, *rows = csv.reader(given)
with open(sys.argv[2], "w", newline="") as made:
    csv.writer(made).writerows([head, *random.sample(rows, len(rows))])
with open(sys.argv[3], "a") as calls:
    calls.write(f"{len(rows)}\\n")
"""


def blurred(records: Table) -> Table:
    """Every value of a person from that person or from the next one, by lot: no row is a copy."""
    rng = np.random.default_rng(len(records["age"]) + int(np.nansum(records["income"])))
    swapped = {}
    for name, values in records.items():
        swapped[name] = np.where(rng.random(len(values)) < 0.7, values, np.roll(values, 1))
    return swapped


def invented(records: Table) -> Table:
    """People who have nothing to do with the given ones."""
    return made_up_people(len(records["age"]), int(np.nansum(records["income"])) % 2**31)


@pytest.fixture(scope="module")
def people() -> tuple[Table, Table]:
    return made_up_people(PEOPLE, 1), made_up_people(PEOPLE, 2)


def primary(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {score["attack"]: score for score in found["attacks"] if score["primary"]}


def test_shadow_releases_tell_members_and_report_low_false_positive_rates(people: tuple[Table, Table]) -> None:
    owner, holdout = people
    found = audit_release(blurred(owner), owner=owner, holdout=holdout, pipeline=blurred, effort=QUICK)
    scores = primary(found)
    assert set(scores) >= BY_SHADOWS
    for name in BY_SHADOWS:
        assert scores[name]["ci"][0] > 0.3 and scores[name]["control"] > 0.9, name
        metrics = {score["metric"] for score in found["attacks"] if score["attack"] == name}
        assert metrics == {"advantage", "auroc", "tpr-at-1-fpr", "tpr-at-0.1-fpr"}
    assert not BY_SHADOWS & {one["attack"] for one in found["skipped"]}


def test_shadow_releases_see_nothing_where_nothing_of_the_records_is_used(people: tuple[Table, Table]) -> None:
    owner, holdout = people
    found = audit_release(invented(owner), owner=owner, holdout=holdout, pipeline=invented, effort=QUICK)
    for name in BY_SHADOWS:
        low, high = primary(found)[name]["ci"]
        assert low <= 0.0 <= high, name
    assert found["worst"]["membership"]["leakage_ci"][0] == 0.0


def test_without_the_maker_it_is_said_what_would_be_needed(people: tuple[Table, Table]) -> None:
    owner, holdout = people
    found = audit_release(blurred(owner), owner=owner, holdout=holdout, effort=QUICK)
    reasons = {one["attack"]: one["reason"] for one in found["skipped"]}
    for name in BY_SHADOWS:
        assert "--pipeline 'command {in} {out}'" in reasons[name]


def test_all_rows_of_a_person_are_in_a_shadow_release_or_none(people: tuple[Table, Table]) -> None:
    owner, holdout = ({name: np.repeat(values, 2) for name, values in part.items()} for part in people)
    for part, first in ((owner, 0), (holdout, PEOPLE)):
        part["who"] = np.repeat(np.arange(PEOPLE) + first, 2)
    seen: list[np.ndarray] = []

    def maker(records: Table) -> Table:
        seen.append(records["who"])
        return {name: values for name, values in records.items() if name != "who"}

    audit_release(maker(owner), owner=owner, holdout=holdout, pipeline=maker, id="who", effort=QUICK)
    for who in seen[1:]:
        _, counts = np.unique(who, return_counts=True)
        assert set(counts.tolist()) == {2} and abs(len(counts) - PEOPLE) <= 2


def written(folder: Path, owner: Table, holdout: Table) -> dict[str, Path]:
    from sfumato.data.plain_tables import write_delimited

    for name, part in (("train", owner), ("control", holdout), ("vendor", blurred(owner))):
        columns = {key: ["" if str(value) == "nan" else str(value) for value in values] for key, values in part.items()}
        write_delimited(folder / f"{name}.csv", columns, ";")
    (folder / "make.py").write_text(SCRIPT.replace("csv.reader(given)", "csv.reader(given, delimiter=';')"))
    return {name: folder / f"{name}.csv" for name in ("train", "control", "vendor")}


def test_a_command_goes_on_where_it_was_stopped(people: tuple[Table, Table], tmp_path: Path) -> None:
    files = written(tmp_path, *people)
    calls = tmp_path / "calls"
    command = f"{sys.executable} {tmp_path / 'make.py'} {{in}} {{out}} {calls}"
    given: dict[str, Any] = {"owner": files["train"], "holdout": files["control"], "pipeline": command}

    def stop(said: str) -> None:
        if "shadow release 4 of 8" in said:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit_release(files["vendor"], **given, effort=QUICK, out=tmp_path / "run", say=stop)
    assert len(calls.read_text().split()) == 3
    found = audit_release(files["vendor"], **given, effort=QUICK, out=tmp_path / "run")
    sizes = calls.read_text().split()
    assert len(sizes) == 8 and all(abs(int(size) - PEOPLE) <= 2 for size in sizes)
    assert primary(found).keys() >= BY_SHADOWS
    kept = [file for file in (tmp_path / "run").rglob("*") if "shadows" in str(file)]
    assert not kept
    for file in (tmp_path / "run").rglob("*"):
        assert not file.is_file() or b"make.py" not in file.read_bytes(), file


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import sys; sys.exit('no licence')", "failed with exit code 1: no licence"),
        ("pass", "wrote nothing to {out}"),
        ("import time; time.sleep(60)", "took longer than 1 s"),
        ("import sys; open(sys.argv[2], 'w').write('a,b\\n' + '1,2\\n' * 50)", "has no column 'age'"),
        ("import sys; open(sys.argv[2], 'w').write('age\\n')", "what the pipeline made has no rows"),
    ],
)
def test_a_maker_that_fails_is_one_sentence_and_leaves_nothing(
    people: tuple[Table, Table], tmp_path: Path, script: str, said: str
) -> None:
    files = written(tmp_path, *people)
    (tmp_path / "make.py").write_text(script)
    with pytest.raises(DataError) as error:
        audit_release(
            files["vendor"],
            owner=files["train"],
            holdout=files["control"],
            pipeline=f"{sys.executable} {tmp_path / 'make.py'} {{in}} {{out}}",
            pipeline_seconds=1.0 if "sleep" in script else 60.0,
            effort=QUICK,
            out=tmp_path / "run",
        )
    assert said in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


def test_a_command_needs_files_and_both_in_one_form(people: tuple[Table, Table], tmp_path: Path) -> None:
    owner, holdout = people
    with pytest.raises(UsageError, match="works on files"):
        audit_release(owner, owner=owner, holdout=holdout, pipeline="cp {in} {out}", effort=QUICK)
    with pytest.raises(UsageError, match="in the same form"):
        PooledRecords.of(owner, np.zeros((30, 3)))
    with pytest.raises(DataError, match="no column 'income'"):
        PooledRecords.of(owner, {name: values for name, values in holdout.items() if name != "income"})


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_what_a_maker_gets_is_what_stood_in_the_files(tmp_path: Path, suffix: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, first in (("a", 0), ("b", 3)):
        numbers = np.arange(first, first + 3)
        path = tmp_path / f"{name}.{suffix}"
        if suffix == "csv":
            path.write_text("code,said\n" + "".join(f'00{number},"a, ""b"""\n' for number in numbers))
        elif suffix == "parquet":
            pq.write_table(pa.table({"code": numbers, "said": ["x", None, "y"]}), path)
        else:
            np.savez(path, code=numbers, said=np.array(["x", "y", "z"]))
    pool = PooledRecords.of(tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}")
    pool.write(np.array([4, 0]), tmp_path / f"out.{suffix}")
    if suffix == "csv":
        assert (tmp_path / "out.csv").read_text() == 'code,said\n004,"a, ""b"""\n000,"a, ""b"""\n'
    elif suffix == "parquet":
        assert pq.read_table(tmp_path / "out.parquet").to_pydict() == {"code": [4, 0], "said": [None, "x"]}
    else:
        assert np.load(tmp_path / "out.npz")["code"].tolist() == [4, 0]
