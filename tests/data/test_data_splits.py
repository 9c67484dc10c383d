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
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(30, 300), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_records_are_split_by_share_and_class(rows: int, classes: int, seed: int) -> None:
    codes = np.random.default_rng(seed).permutation(np.arange(rows) % classes)
    parts = split(make(codes), seed=seed)
    sizes = [len(parts.owner), len(parts.attacker), len(parts.victim)]
    assert sum(sizes) == rows
    assert np.abs(np.array(sizes) - rows * np.array([0.6, 0.2, 0.2])).max() <= 2
    for part in (parts.owner, parts.attacker, parts.victim):
        counts = np.bincount(part.label("y"), minlength=classes)
        assert counts.max() - counts.min() <= 2


@settings(max_examples=60, deadline=None)
@given(st.integers(6, 40), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_splits_share_no_subject(subjects: int, classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(subjects), rng.integers(4, 12, subjects))
    codes = np.concatenate([np.arange(classes), rng.integers(0, classes, len(ids) - classes)])
    parts = split(make(codes, ids), seed=seed)
    together = [set(part.ids.tolist()) for part in (parts.owner, parts.attacker, parts.victim)]
    assert sum(len(part) for part in together) == subjects, "every subject is in exactly one split"
    rows = np.concatenate([part.x[:, 0] for part in (parts.owner, parts.attacker, parts.victim)])
    assert sorted(rows.tolist()) == list(range(len(ids))), "no record is lost or doubled"
    if subjects >= 15:
        assert abs(len(parts.owner) / len(ids) - 0.6) < 0.15


def test_each_split_gets_every_class_if_subjects_allow() -> None:
    # One class per subject: only a placement that looks at classes can serve all splits.
    ids = np.repeat(np.arange(9), 5)
    codes = np.repeat(np.arange(9) % 3, 5)
    for seed in range(20):
        parts = split(make(codes, ids), seed=seed)
        for part in (parts.owner, parts.attacker, parts.victim):
            assert set(part.label("y").tolist()) == {0, 1, 2}


def test_a_private_fact_about_the_subject_reaches_every_split() -> None:
    ids = np.repeat(np.arange(12), 10)
    base = make(np.arange(120) % 2, ids)
    sex = (ids % 4 == 0).astype(np.int64)
    schema = Schema("table", (1,), utility=base.schema.utility, private={"sex": ("f", "m")})
    data = Dataset(base.x, schema, base.utility, {"sex": sex}, base.ids)
    for seed in range(20):
        parts = split(data, seed=seed)
        for part in (parts.owner, parts.attacker, parts.victim):
            assert set(part.label("sex").tolist()) == {0, 1}


def test_the_seed_decides() -> None:
    data = make(np.arange(100) % 2)
    assert (split(data, seed=3).owner.ids == split(data, seed=3).owner.ids).all()
    assert not (split(data, seed=3).owner.ids == split(data, seed=4).owner.ids).all()


def test_a_split_with_one_class_is_refused() -> None:
    ids = np.array([0] * 10 + [1] * 10 + [2] * 10)
    codes = np.array([0] * 10 + [1] * 10 + [0] * 10)
    with pytest.raises(DataError, match="only the class"):
        split(make(codes, ids), seed=0)


def test_two_subjects_cannot_make_three_splits() -> None:
    with pytest.raises(DataError, match="too few"):
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
    assert [len(parts.owner), len(parts.attacker), len(parts.victim)] == [60, 30, 30]
    assert parts.owner.schema == parts.victim.schema


def test_ranges_come_from_the_train_part_only(tmp_path: Path) -> None:
    folder = two_parts(tmp_path / "set", age=[list(range(90)), [1000] * 30])
    parts = load_splits(folder, utility="income", private="sex", seed=0)
    age = next(column for column in parts.schema.columns if column.name == "age")
    assert (age.low, age.high) == (0, 89)
    assert (parts.victim.x[:, 0] == 1).all()
    assert load(folder, utility="income", private="sex", part="test").schema == parts.schema


def test_subjects_in_both_parts_are_pooled(tmp_path: Path) -> None:
    folder = two_parts(tmp_path / "set", who=[[row % 20 for row in range(90)], [row % 20 for row in range(30)]])
    parts = load_splits(folder, utility="income", private="sex", id="who", seed=0)
    assert len(parts.owner) + len(parts.attacker) + len(parts.victim) == 120
    assert abs(len(parts.owner) / 120 - 0.6) < 0.1


def test_limit_counts_all_records(tmp_path: Path) -> None:
    parts = load_splits(two_parts(tmp_path / "set"), utility="income", private="sex", seed=0, limit=40)
    assert [len(parts.owner), len(parts.attacker), len(parts.victim)] == [20, 10, 10]


def test_given_shares_pool_the_parts(tmp_path: Path) -> None:
    parts = load_splits(two_parts(tmp_path / "set"), utility="income", seed=0, shares=(0.5, 0.25, 0.25))
    assert [len(parts.owner), len(parts.attacker), len(parts.victim)] == [60, 30, 30]


def test_digits_split_without_a_test_part() -> None:
    parts = load_splits("digits", seed=0, limit=500)
    assert [len(parts.owner), len(parts.attacker), len(parts.victim)] == [300, 100, 100]
