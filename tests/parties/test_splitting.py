"""A cut among parties: about equal shares, no subject twice, every party encodes alike."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from sfumato.core.errors import DataError, UsageError
from sfumato.parties.partition import split_parties
from sfumato.parties.party_folder import PartyFolder, open_party


def party(folder: Path) -> PartyFolder:
    return open_party({"data": str(folder)}, 1)


def test_parties_get_about_equal_shares_and_no_record_twice(trio: list[Path]) -> None:
    seen = set()
    for folder in trio:
        train, test = party(folder).records("train"), party(folder).records("test")
        assert abs(len(train) - 120) < 40 and abs(len(test) - 30) < 20
        assert np.bincount(train.utility["digit"], minlength=10).min() >= 3
        for part in (train, test):
            rows = {record.tobytes() for record in part.x}
            assert not rows & seen
            seen |= rows


def test_all_parties_have_one_schema_and_seeds_of_their_own(trio: list[Path]) -> None:
    members = [party(folder) for folder in trio]
    assert members[0].schema == members[1].schema
    assert len({member.seed for member in members}) == 3


def test_the_same_seed_cuts_alike(trio: list[Path], tmp_path: Path) -> None:
    options = {"parties": 3, "utility": ["digit"], "private": ["ge5"], "limit": 450}
    again = split_parties("digits", tmp_path / "a", **options)
    other = split_parties("digits", tmp_path / "b", seed=1, **options)
    first, second, third = (pq.read_table(one[0] / "train.parquet") for one in (trio, again, other))
    assert first.equals(second) and not first.equals(third)


def test_folders_to_copy_from_hold_no_seed_and_ask_for_no_averaging(tmp_path: Path) -> None:
    for folder in split_parties("digits", tmp_path / "a", parties=2, utility=["digit"], limit=100):
        assert party(folder).seed is None and "fedavg" not in (folder / "party.toml").read_text()
        with pytest.raises(UsageError, match="not in fedavg"):
            party(folder).check_mode("fedavg")


def test_each_sets_how_much_a_party_shares(tmp_path: Path) -> None:
    folders = split_parties("digits", tmp_path / "a", parties=2, utility=["digit"], limit=500, each=50)
    assert [len(party(folder).records("train")) for folder in folders] == [50, 50]
    with pytest.raises(DataError, match="not 5000"):
        split_parties("digits", tmp_path / "b", parties=2, utility=["digit"], limit=500, each=5000)
    assert not (tmp_path / "b").exists()


def test_a_subject_stays_with_one_party(tmp_path: Path) -> None:
    with (tmp_path / "p.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["who", "age", "y"])
        writer.writerows([f"p{i // 4}", i % 50, "ab"[i % 2]] for i in range(240))
    folders = split_parties(str(tmp_path / "p.csv"), tmp_path / "cut", parties=3, utility=["y"], id="who")
    groups = [set(party(folder).records(part).ids.tolist()) for folder in folders for part in ("train", "test")]
    assert sum(map(len, groups)) == len(set().union(*groups)) == 60


def test_one_party_is_too_few_and_a_label_is_needed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="2 to 1,000, got 1"):
        split_parties("digits", tmp_path / "a", parties=1)
    with pytest.raises(UsageError, match="got 100,000"):
        split_parties("digits", tmp_path / "a", parties=100_000)
    with pytest.raises(DataError, match="no utility label"):
        split_parties("digits", tmp_path / "a", parties=2, utility=[])


def test_one_record_more_or_less_changes_one_record_of_one_party(tmp_path: Path) -> None:
    rows = [[str(i), str(i % 50), "ab"[i % 2]] for i in range(100)]

    def dealt(name: str, kept: list[list[str]], seed: int) -> list[set[tuple[str, ...]]]:
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["who", "age", "y"], *kept])
        options = {"parties": 2, "utility": ["y"], "x": ["age"], "id": "who", "seed": seed}
        folders = split_parties(str(tmp_path / f"{name}.csv"), tmp_path / name, limit=(None, 90)[seed % 2], **options)
        tables = [pq.read_table(folder / f"{part}.parquet") for folder in folders for part in ("train", "test")]
        return [{tuple(row.values()) for row in table.to_pylist()} for table in tables]

    for case in range(20):
        gone = (37 * case) % 100
        pairs = zip(dealt(f"{case}a", rows, case), dealt(f"{case}b", rows[:gone] + rows[gone + 1 :], case), strict=True)
        assert sum(len(one ^ other) for one, other in pairs) <= 1
