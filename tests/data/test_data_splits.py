"""Owner, attacker and victims share no subject, whatever the data look like."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from data_samples import table_columns, write
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.dataset import Dataset
from sfumato.core.errors import DataError, UsageError
from sfumato.core.schema import Schema
from sfumato.data import load, load_splits, split


def make(codes: np.ndarray, ids: np.ndarray | None = None) -> Dataset:
    classes = tuple(str(code) for code in range(int(codes.max()) + 1))
    return Dataset(
        x=np.arange(len(codes), dtype=np.float32)[:, None],
        schema=Schema("table", (1,), utility={"y": classes}),
        utility={"y": codes.astype(np.int64)},
        ids=np.empty(0, dtype=np.str_) if ids is None else ids.astype(str),
        named=ids is not None,
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(100, 300), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_records_are_split_by_share(rows: int, classes: int, seed: int) -> None:
    codes = np.random.default_rng(seed).permutation(np.arange(rows) % classes)
    parts = split(make(codes), seed=seed)
    sizes = np.array([len(parts.owner), len(parts.attacker), len(parts.victim)])
    shares = np.array([0.6, 0.2, 0.2])
    assert sizes.sum() == rows
    assert (np.abs(sizes - rows * shares) <= 6 * np.sqrt(rows * shares * (1 - shares))).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(40, 80), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_splits_share_no_subject(subjects: int, classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(subjects), rng.integers(4, 12, subjects))
    codes = np.concatenate([np.arange(classes), rng.integers(0, classes, len(ids) - classes)])
    parts = split(make(codes, ids), seed=seed)
    together = [set(part.ids.tolist()) for part in (parts.owner, parts.attacker, parts.victim)]
    assert sum(len(part) for part in together) == subjects, "every subject is in exactly one split"
    rows = np.concatenate([part.x[:, 0] for part in (parts.owner, parts.attacker, parts.victim)])
    assert sorted(rows.tolist()) == list(range(len(ids))), "no record is lost or doubled"


def test_equal_records_of_nobody_in_particular_stay_together() -> None:
    data = Dataset.from_arrays(np.repeat(np.arange(50) / 50, 4)[:, None])
    parts = split(data, seed=0)
    values = [set(part.x[:, 0].tolist()) for part in (parts.owner, parts.attacker, parts.victim)]
    assert sum(map(len, values)) == 50


def test_the_share_of_the_owner_is_enough() -> None:
    parts = split(make(np.arange(2000) % 2), seed=0, shares=(0.9,))
    assert abs(len(parts.owner) - 1800) < 60
    assert abs(len(parts.attacker) - 100) < 50 and abs(len(parts.victim) - 100) < 50


def test_other_labels_and_other_columns_of_x_give_the_same_cut(tmp_path: Path) -> None:
    people = write(tmp_path / "p.parquet", **table_columns(200))
    asked = (
        {"utility": "income", "private": "sex"},
        {"utility": "sex"},
        {"utility": "old=age >= 40", "x": ["height", "job"]},
    )
    cuts = [load_splits(people, **options, seed=3, limit=200) for options in asked]  # type: ignore[arg-type]
    for part in ("owner", "attacker", "victim"):
        names = [getattr(cut, part).ids.tolist() for cut in cuts]
        assert names[0] == names[1] == names[2]


def test_the_seed_decides() -> None:
    data = make(np.arange(100) % 2)
    assert split(data, seed=3).owner.ids.tolist() == split(data, seed=3).owner.ids.tolist()
    assert split(data, seed=3).owner.ids.tolist() != split(data, seed=4).owner.ids.tolist()


def test_a_split_with_one_class_is_refused() -> None:
    with pytest.raises(DataError, match="only the class '0' of 'y'; use more records"):
        split(make(np.arange(100) // 99), seed=0)


def test_two_subjects_cannot_make_three_splits() -> None:
    with pytest.raises(DataError, match=r"falls to the (owner|attacker|victim); use more"):
        split(make(np.arange(10) % 2, np.arange(10) % 2), seed=0)


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.9, 0.2, -0.1), (0.5, 0.2, 0.2)])
def test_shares_must_make_sense(shares: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match="shares"):
        split(make(np.arange(30) % 2), seed=0, shares=shares)


def two_parts(folder: Path, **more: list[object]) -> Path:
    for part, rows, seed in (("train", 90, 0), ("test", 30, 1)):
        columns = dict(table_columns(rows, seed))
        for name, values in more.items():
            columns[name] = pa.array(values[0 if part == "train" else 1])
        write(folder / f"{part}.parquet", **columns)
    return folder


def test_the_test_part_is_the_victim(tmp_path: Path) -> None:
    parts = load_splits(two_parts(tmp_path / "set"), utility="income", private="sex", seed=0)
    assert {name.split(":")[0] for name in parts.victim.ids} == {"test"}
    assert len(parts.victim) == 30 and len(parts.owner) + len(parts.attacker) == 90
    assert abs(len(parts.owner) - 60) < 20
    assert parts.owner.schema == parts.victim.schema


def test_ranges_come_from_the_train_part_only(tmp_path: Path) -> None:
    folder = two_parts(tmp_path / "set", age=[[*range(88), 89, 89], [1000] * 30])
    parts = load_splits(folder, utility="income", private="sex", seed=0)
    age = next(column for column in parts.schema.columns if column.name == "age")
    assert (age.low, age.high) == (0, 89)
    assert (parts.victim.x[:, 0] == 1).all()
    assert load(folder, utility="income", private="sex", part="test").schema == parts.schema


def test_subjects_in_both_parts_are_placed_whole(tmp_path: Path) -> None:
    shared = [[row % 40 for row in range(90)], [row % 20 for row in range(30)]]
    folder = two_parts(tmp_path / "set", who=shared)
    parts = load_splits(folder, utility="income", private="sex", id="who", seed=0)
    found = [set(map(int, part.ids)) for part in (parts.owner, parts.attacker, parts.victim)]
    assert sum(map(len, found)) == 40
    assert all(who < 20 for who in found[2]), "who is in the train part alone is no victim"
    assert any(who < 20 for who in found[0])
    with pytest.raises(UsageError, match="subjects in both parts"):
        load_splits(folder, utility="income", id="who", shares=(0.5, 0.5))


def test_limit_counts_all_records_at_most(tmp_path: Path) -> None:
    parts = load_splits(two_parts(tmp_path / "set"), utility="income", private="sex", seed=0, limit=64)
    every = len(parts.owner) + len(parts.attacker) + len(parts.victim)
    assert 40 < every < 80, "120 rows, rounded up to 128: about 60 of them"


def test_three_shares_pool_the_parts(tmp_path: Path) -> None:
    parts = load_splits(two_parts(tmp_path / "set"), utility="income", seed=0, shares=(0.5, 0.25, 0.25))
    assert {name.split(":")[0] for name in parts.victim.ids} == {"train", "test"}
    assert abs(len(parts.owner) - 60) < 20


def test_digits_split_without_a_test_part() -> None:
    parts = load_splits("digits", seed=0, limit=500)
    every = np.array([len(parts.owner), len(parts.attacker), len(parts.victim)])
    assert (np.abs(every - [300, 100, 100]) < 50).all()
