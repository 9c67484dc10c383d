"""Three files are read side by side: matched by name, written alike, and refused in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.core.errors import DataError, UsageError
from sfumato.data.reconciled_tables import reconcile
from sfumato.testing.made_up_people import made_up_people


def tables(count: int = 60) -> list[dict[str, Any]]:
    return [dict(made_up_people(count, seed)) for seed in (7, 8, 9)]


def coded(name: str, *given: Any, **options: Any) -> list[np.ndarray]:
    found = reconcile(*given, **options)
    place = [column.name for column in found.columns].index(name)
    return [part[:, place] for part in (found.release, found.owner, found.holdout)]


def test_numbers_written_as_text_are_the_same_numbers() -> None:
    release, owner, holdout = tables()
    release = dict(owner)
    release["pressure"] = np.array([f" {value:.1f}" for value in owner["pressure"]])
    ours, theirs, _ = coded("pressure", release, owner, holdout)
    assert (ours == theirs).all()


def test_numbers_are_put_into_the_intervals_of_another_file() -> None:
    _, owner, holdout = tables()
    release = {**owner, "age": np.where(owner["age"] <= 50, "(17, 50]", "(50, 90]")}
    found = reconcile(release, owner, holdout)
    assert any("intervals" in note for note in found.notes)
    ours, theirs, _ = coded("age", release, owner, holdout)
    assert (ours == theirs).all() and len(np.unique(ours)) == 2


@pytest.mark.parametrize(
    ("column", "form"),
    [
        ("income", "${:,.2f}"),
        ("income", "{:,.0f} EUR"),
        ("income", "{:.0f}+"),
        ("weight", "{} kg"),
        ("age", "{} years"),
    ],
)
def test_numbers_with_a_unit_or_thousands_apart_are_the_same_numbers(column: str, form: str) -> None:
    _, owner, holdout = tables()
    written = [None if np.isnan(value) else form.format(value) for value in owner[column].astype(float).round(1)]
    if column == "age":
        written = [form.format(value) for value in owner[column]]
    release = {**owner, column: written}
    ours, theirs, _ = coded(column, release, owner, holdout)
    assert (ours == theirs).all()
    assert any("are read as numbers, as in another file" in note for note in reconcile(release, owner, holdout).notes)


@pytest.mark.parametrize("value", ["12/07", "1 of 3", "abc", "-", "3-4"])
def test_texts_that_are_no_single_number_stay_texts(value: str) -> None:
    _, owner, holdout = tables()
    release = {**owner, "weight": [value] + ["61.5 kg"] * 59}
    assert not any("read as numbers" in note for note in reconcile(release, owner, holdout).notes)


def test_a_file_without_values_makes_no_numbers_of_texts() -> None:
    release, owner, holdout = tables()
    holdout["town"] = [None] * 60
    assert not any("read as numbers" in note for note in reconcile(release, owner, holdout).notes)


def test_columns_match_whatever_the_capitals_and_marks_of_their_names() -> None:
    release, owner, holdout = tables()
    owner["birth_town"], holdout["birth_town"] = owner["town"], holdout["town"]
    release = {name.upper(): values for name, values in release.items()} | {"Birth Town": release["town"]}
    found = reconcile(release, owner, holdout)
    assert [column.name for column in found.columns if not column.companion] == list(owner)
    assert "column Birth Town of the release is taken for birth_town" in found.notes
    del release["Birth Town"]
    both = {**release, "Birth-Town": release["TOWN"], "birth town": release["TOWN"]}  # which one, nobody can say
    assert dict(reconcile(both, owner, holdout).skipped)["column birth_town"] == "not in the release"


def test_missing_values_and_unseen_categories_are_said_not_refused() -> None:
    release, owner, holdout = tables()
    release["town"] = np.where(np.arange(60) < 3, "Atlantis", release["town"])
    release["smoker"] = np.where(np.arange(60) < 3, "?", release["smoker"])
    found = reconcile(release, owner, holdout)
    assert any("town: 1 value is in the release alone" in note for note in found.notes)
    smoker = next(column for column in found.columns if column.name == "smoker")
    assert smoker.categories == 3


def test_columns_of_one_file_alone_are_listed() -> None:
    release, owner, holdout = tables()
    del release["income"]
    release["score"] = np.arange(60)
    skipped = dict(reconcile(release, owner, holdout).skipped)
    assert skipped["column income"] == "not in the release"
    assert skipped["column score"] == "not in the owner's records and not in the holdout"


def test_a_column_without_values_is_left_out() -> None:
    release, owner, holdout = tables()
    owner["empty"] = holdout["empty"] = release["empty"] = np.full(60, np.nan)
    assert dict(reconcile(release, owner, holdout).skipped)["column empty"] == "every value is missing"
    with pytest.raises(DataError, match="every value is missing in the private column 'empty'"):
        reconcile(release, owner, holdout, private=("empty",))


def test_ten_thousand_categories_are_codes() -> None:
    parts = tables(200)
    for number, part in enumerate(parts):
        part["code"] = np.array([f"c{(row * 50 + number) % 10_000}" for row in range(200)])
    found = reconcile(*parts)
    assert found.owner.shape[1] == len(found.columns) == 10


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_the_three_are_read_from_files_of_any_kind(tmp_path: Path, suffix: str) -> None:
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    memory = tables()
    paths = []
    for name, part in zip(("release", "owner", "holdout"), memory, strict=True):
        path = tmp_path / f"{name}.{suffix}"
        table = pa.table({key: pa.array(values, from_pandas=True) for key, values in part.items()})
        if suffix == "parquet":
            pq.write_table(table, path)
        else:
            pc.write_csv(table, path, pc.WriteOptions(delimiter="\t" if suffix == "tsv" else ","))
        paths.append(path)
    read, kept = reconcile(*paths), reconcile(*memory)
    assert [column.name for column in read.columns] == [column.name for column in kept.columns]
    assert np.array_equal(read.owner, kept.owner) and np.array_equal(read.release, kept.release)


def test_booleans_of_parquet_and_of_csv_are_the_same() -> None:
    _, owner, holdout = tables()
    smokes = owner["smoker"] == "yes"
    release = {**owner, "smoker": np.where(smokes, "True", "False")}
    owner["smoker"], holdout["smoker"] = smokes, holdout["smoker"] == "yes"
    ours, theirs, _ = coded("smoker", release, owner, holdout)
    assert (ours == theirs).all()


def test_dates_are_days_and_a_nearer_day_is_nearer() -> None:
    parts = tables()
    for part in parts:
        part["seen"] = np.array([f"20{10 + row // 12:02d}-{1 + row % 12:02d}-15" for row in range(60)])
    parts[0]["seen"] = np.array([f"{day} 00:00:00" for day in parts[0]["seen"]])
    parts[0]["seen"][0] = ""
    ours, theirs, _ = coded("seen", *parts)
    assert (ours[1:] == theirs[1:]).all() and (np.diff(theirs) > 0).all()
    found = reconcile(*parts)
    assert [column.number for column in found.columns if column.name == "seen"] == [True, False]


def test_the_index_that_pandas_writes_is_left_out(tmp_path: Path) -> None:
    paths = []
    for name, part in zip(("release", "owner", "holdout"), tables(), strict=True):
        path = tmp_path / f"{name}.csv"
        rows = [f"{row},{','.join(map(str, values))}" for row, values in enumerate(zip(*part.values(), strict=True))]
        path.write_text("\n".join([f",{','.join(part)}", *rows]) + "\n")
        paths.append(path)
    found = reconcile(*paths)
    assert "" not in {column.name for column in found.columns}
    assert dict(found.skipped)["a column without a name"] == "it counts rows, most likely"


def test_a_release_with_values_between_whole_numbers_took_them_for_quantities() -> None:
    """A gap filled with 1.5 is nearer to 1 than to 3: as a category it would be as far from both."""
    parts = tables()
    for part in parts:
        part["grade"] = np.arange(60) % 3 + 1
    assert not next(one for one in reconcile(*parts).columns if one.name == "grade").number
    parts[0]["grade"] = np.where(np.arange(60) == 0, 1.5, parts[0]["grade"])
    ours, theirs, _ = coded("grade", *parts)
    assert theirs[0] < ours[0] < theirs[1]


def test_wrong_files_are_one_sentence_each() -> None:
    release, owner, holdout = tables()
    with pytest.raises(DataError, match="has none of the columns"):
        reconcile({"other": np.arange(60)}, owner, holdout)
    with pytest.raises(DataError, match=r"60 of the 60 rows .* are also in"):
        reconcile(release, owner, owner)
    with pytest.raises(DataError, match="has 1 row: at least 20"):
        reconcile({name: values[:1] for name, values in release.items()}, owner, holdout)
    with pytest.raises(DataError, match="has no rows"):
        reconcile({name: values[:0] for name, values in release.items()}, owner, holdout)
    with pytest.raises(UsageError, match="did you mean 'diagnosis'"):
        reconcile(release, owner, holdout, private=("diagnosi",))
    with pytest.raises(DataError, match="the holdout has 2 people: at least 20"):
        reconcile(release, {**owner, "id": np.arange(60)}, {**holdout, "id": np.repeat([100, 101], 30)}, id="id")
    ids = np.arange(60)
    with pytest.raises(DataError, match=r"30 people .* are in"):
        reconcile(release, {**owner, "id": ids}, {**holdout, "id": ids + 30}, id="id")


def test_a_few_rows_that_two_people_share_by_chance_are_no_overlap() -> None:
    rng = np.random.default_rng(0)
    parts = [{"a": rng.integers(0, 3, 100), "b": rng.integers(0, 3, 100)} for _ in range(3)]
    assert any("no more than chance" in note for note in reconcile(*parts).notes)
