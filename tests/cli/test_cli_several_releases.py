"""``audit --release a --release b --owner``: one folder, one table, one report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from desk import Call

from sfumato.testing.made_up_people import made_up_people
from sfumato.workflow import releases_named

PEOPLE = 60
AUDIT = (
    "audit",
    "--owner",
    "made/train.csv",
    "--holdout",
    "made/control.csv",
    "--effort",
    "smoke",
    "-q",
    "--jobs",
    "1",
)


def written(path: Path, seed: int) -> None:
    people = made_up_people(PEOPLE, seed)
    lines = [",".join(people), *(",".join(str(value) for value in row) for row in zip(*people.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made").mkdir()
    for name, seed in (("train", 0), ("control", 1), ("nobody", 2), ("copied", 0)):
        written(tmp_path / "made" / f"{name}.csv", seed)
    return tmp_path


def test_a_folder_of_releases_is_one_table_one_report_and_goes_on(files: Path, call: Call) -> None:
    ended = call(*AUDIT, "--release", "made", "--private", "diagnosis", "--out", "all", "--json")
    assert ended.code == 0, ended.err
    found = {one["point"]: one["worst"] for one in json.loads(ended.out)["points"]}
    assert set(found) == {"nobody", "copied"}  # the owner's and the held-out records are no releases
    assert found["copied"]["copies"]["leakage"] >= 0.95
    assert found["nobody"]["copies"]["leakage"] <= 0.2
    stamps = {path: path.stat().st_mtime_ns for path in (files / "all").rglob("scores.json")}
    again = call(*AUDIT, "--release", "made/*.csv", "--private", "diagnosis", "--out", "all")
    assert again.code == 0 and "copied" in again.out and "next: sfumato report all" in again.out
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    assert call("report", "all").code == 0
    page = (files / "all" / "report.html").read_text()
    assert "nobody" in page and "copied" in page
    other = call(*AUDIT, "--release", "made", "--out", "all")
    assert other.code == 3 and "another comparison" in other.err


def test_what_names_no_release_is_one_sentence(files: Path, call: Call) -> None:
    (files / "elsewhere").mkdir()
    written(files / "elsewhere" / "nobody.csv", 3)
    cases = {
        ("none/*.csv",): (3, "names no release"),
        ("made/nobody.csv", "elsewhere/nobody.csv"): (2, "two releases are called 'nobody'"),
        ("made/nobody.csv", "made/missing.csv"): (3, "made/missing.csv does not exist"),
    }
    for named, (code, said) in cases.items():
        ended = call(*AUDIT, *(word for one in named for word in ("--release", one)), "--out", "out")
        assert ended.code == code and said in ended.err, ended.err
        assert len(ended.err.strip().splitlines()) == 1 and not (files / "out").exists()


def test_a_wrong_column_leaves_nothing_behind_and_the_right_one_goes_there(files: Path, call: Call) -> None:
    typed = (*AUDIT, "--release", "made", "--out", "all", "--private")
    ended = call(*typed, "diagnosys")
    assert ended.code != 0 and "diagnosis" in ended.err and len(ended.err.strip().splitlines()) == 1
    assert not (files / "all").exists()
    assert call(*typed, "diagnosis").code == 0


def test_one_bad_file_among_several_stops_all_before_any_work(files: Path, call: Call) -> None:
    (files / "made" / "tiny.csv").write_text("".join((files / "made" / "nobody.csv").open().readlines()[:2]))
    ended = call(*AUDIT, "--release", "made", "--out", "all")
    assert ended.code == 3 and "made/tiny.csv has 1 row" in ended.err
    assert not (files / "all").exists()


def test_a_folder_without_tables_is_one_release(tmp_path: Path) -> None:
    np.save(tmp_path / "picture.npy", np.zeros(3))
    assert releases_named([tmp_path], "a.csv", "b.csv") == [tmp_path]
