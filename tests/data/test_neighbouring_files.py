"""Two files that differ in one record or person, from the file to the parts: they differ in that record or person."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from data_samples import write

from sfumato.core.dataset import Dataset
from sfumato.data import load_splits, splits
from sfumato.data.placement import public_size

CASES = 200


def rows_of(rng: np.random.Generator) -> list[tuple[int, int, str, str]]:
    """About a hundred rows of people with one to four rows each, some of them alike; all between 64 and 128."""
    people = np.repeat(np.arange(50), rng.integers(1, 4, 50))
    rows = [(int(who), int(rng.integers(0, 9)), str(rng.choice(list("abc"))), "ny"[who % 2]) for who in people]
    return [rows[place] for place in rng.permutation(len(rows))]


def written(path: Path, rows: list[tuple[int, int, str, str]]) -> Path:
    columns = zip(*rows, strict=True)
    return write(path, **dict(zip(("who", "age", "job", "y"), map(pa.array, columns), strict=True)))


def contents(part: Dataset) -> Counter[bytes]:
    return Counter(one.tobytes() for one in part.origin.contents)


def differing(one: Path, other: Path, options: dict[str, Any]) -> dict[str, int]:
    """In how many records each part of two files differs."""
    cuts = [load_splits(file, **options) for file in (one, other)]
    parts = {name: [contents(getattr(cut, name)) for cut in cuts] for name in splits.NAMES}
    return {name: sum(((a - b) + (b - a)).values()) for name, (a, b) in parts.items()}


@pytest.mark.parametrize("limit", [None, 60])
def test_one_record_more_or_less_changes_one_record_of_one_part(tmp_path: Path, limit: int | None) -> None:
    for case in range(CASES // 2):
        rng = np.random.default_rng(case)
        rows = rows_of(rng)
        gone = int(rng.integers(len(rows)))
        files = [written(tmp_path / "a.parquet", rows), written(tmp_path / "b.parquet", rows[:gone] + rows[gone + 1 :])]
        found = differing(*files, {"x": ["age", "job"], "seed": case, "limit": limit})
        assert sum(found.values()) <= 1, (case, found)


@pytest.mark.parametrize("limit", [None, 60])
def test_one_person_more_or_less_changes_one_part_by_that_person(tmp_path: Path, limit: int | None) -> None:
    for case in range(CASES // 2):
        rng = np.random.default_rng(case)
        rows = rows_of(rng)
        gone = int(rng.integers(50))
        theirs = sum(row[0] == gone for row in rows)
        others = [row for row in rows if row[0] != gone]
        files = [written(tmp_path / "a.parquet", rows), written(tmp_path / "b.parquet", others)]
        found = differing(*files, {"id": "who", "seed": case, "limit": limit})
        assert sum(found.values()) <= theirs and sum(count > 0 for count in found.values()) <= 1, (case, found)


def test_a_cut_by_permutation_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def permuted(keys: Any, shares: Any, seed: int, what: str) -> Any:
        order = np.random.default_rng(seed).permutation(len(keys))
        return np.searchsorted(np.cumsum(shares)[:-1], (order + 0.5) / len(keys)).astype(np.int64)

    monkeypatch.setattr(splits, "placed", permuted)
    rows = rows_of(np.random.default_rng(0))
    files = [written(tmp_path / "a.parquet", rows), written(tmp_path / "b.parquet", rows[1:])]
    assert sum(differing(*files, {"x": ["age", "job"]}).values()) > 10


def test_the_order_of_the_rows_does_not_matter(tmp_path: Path) -> None:
    rows = rows_of(np.random.default_rng(0))
    files = [written(tmp_path / "a.parquet", rows), written(tmp_path / "b.parquet", rows[::-1])]
    assert sum(differing(*files, {"limit": 60, "x": ["age"]}).values()) == 0


TENTHS = [Decimal(place) / 10 for place in range(200)]
DAYS = np.datetime64("2024-01-01") + np.arange(200)


@pytest.mark.parametrize(
    ("usual", "more", "id"),
    [
        (TENTHS, [*TENTHS, Decimal("1.2345")], None),
        (TENTHS, [*TENTHS, Decimal("1.2345")], "odd"),
        (DAYS, np.append(DAYS, np.datetime64("2024-01-01T01:02:03.000000004")), None),
    ],
    ids=["decimals", "people by decimals", "times"],
)
def test_a_value_of_more_digits_moves_no_other_record(tmp_path: Path, usual: Any, more: Any, id: str | None) -> None:
    """The type of a Parquet column, and with it the text of every value, may follow from all of its values."""
    options, ages, y = {"x": ["age"], "utility": "y", "id": id}, list(range(201)), [*"ny" * 100, "n"]
    one = write(tmp_path / "a.parquet", odd=pa.array(usual), age=ages[:200], y=y[:200])
    other = write(tmp_path / "b.parquet", odd=pa.array(more), age=ages, y=y)
    assert sum(differing(one, other, options).values()) == 1


def test_a_limit_knows_no_more_of_the_number_of_rows_than_its_power_of_two(tmp_path: Path) -> None:
    from sfumato.data.readers.locate import open_data

    opened = open_data(written(tmp_path / "a.parquet", rows_of(np.random.default_rng(0))))
    assert [public_size(opened, rows) for rows in (1, 64, 65, 128, 129)] == [1, 64, 128, 128, 256]
    assert public_size(open_data("digits"), 5000) == 5000
