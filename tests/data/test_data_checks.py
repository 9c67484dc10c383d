"""A check tells everything at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from data_samples import image_cells, png, table_columns, write

from sfumato.data import Problem, check


def told(problems: list[Problem]) -> str:
    return "\n".join(str(problem) for problem in problems)


def test_a_good_file_has_no_problems(people: Path, pictures: Path) -> None:
    assert check(people, utility="income", private="sex") == []
    assert check(pictures, utility="label") == []


def test_many_problems_are_told_in_one_pass(tmp_path: Path) -> None:
    columns = table_columns()
    columns["height"] = pa.array([float("nan"), float("inf"), *([1.5] * 58)])
    columns["empty"] = pa.nulls(60, pa.string())
    columns["same"] = pa.array(["s"] * 60)
    columns["one"] = pa.array(["only"] * 60)
    columns["rare"] = pa.array([*(["often"] * 58), "seldom", "seldom"])
    path = write(tmp_path / "bad.parquet", **columns)
    problems = check(path, utility=["incme", "one", "rare"], private="sex")
    text = told(problems)
    for expected in (
        "no column 'incme'; did you mean 'income'",
        "column 'height', row 0: 1 value is NaN",
        "column 'height', row 1: 1 value is infinite",
        "column 'empty': every value is missing",
        "column 'same': is constant",
        "column 'one': the label has only one class, 'only'",
        "'seldom' 2",
    ):
        assert expected in text, text
    severities = [problem.severity for problem in problems]
    assert severities == sorted(severities), "errors come first"


def test_bad_images_are_all_named_with_their_rows(tmp_path: Path) -> None:
    good = [png(np.full((4, 4), shade)) for shade in range(20)]
    good[3], good[7], good[9] = b"rubbish", png(np.zeros((5, 4))), None  # type: ignore[call-overload]
    good[11] = good[10]
    path = write(tmp_path / "i.parquet", image=image_cells(good), y=pa.array(np.arange(20) % 2))
    text = told(check(path, utility="y"))
    assert "row 3: the image cannot be read" in text
    assert "row 7: the image is 1×5×4, expected 1×4×4" in text
    assert "row 9: the record is missing" in text
    assert "row 11 repeats row 10" in text


def test_repeats_count_only_between_people_where_people_are_named(tmp_path: Path) -> None:
    columns = {"age": pa.array([*range(20), 3, 4]), "y": pa.array([*("ab" * 10), "b", "a"])}
    for person, found in (
        ([*range(20), 3, 4], None),
        ([*range(20), 3, 5], "1 record repeats an earlier one of somebody"),
    ):
        path = write(tmp_path / "p.parquet", person=pa.array([f"p{n}" for n in person]), **columns)
        text = told(check(path, utility="y", id="person"))
        assert (found or "") in text and ("repeat" in text) == bool(found), text
    assert "2 records repeat" in told(check(path, x="age", utility="y"))


def test_ragged_and_infinite_lists_are_found(tmp_path: Path) -> None:
    cells = [[float(row), 2.0] for row in range(20)]
    cells[4] = [float("nan"), 1.0]
    path = write(tmp_path / "l.parquet", v=pa.array(cells), y=pa.array(np.arange(20) % 2))
    assert "row 4: 1 record holds NaN or infinity" in told(check(path, utility="y"))
    cells[5] = [1.0]
    path = write(tmp_path / "r.parquet", v=pa.array(cells), y=pa.array(np.arange(20) % 2))
    text = told(check(path, utility="y"))
    assert "row 5: the record has 1 values, others have 2" in text and "row 4: the record holds NaN" in text


def test_a_private_label_that_follows_from_the_utility_is_a_warning(people: Path) -> None:
    same = told(check(people, utility="income", private="rich=income == high"))
    assert "is the utility label 'income' under other names" in same
    follows = told(check("digits", utility="digit", private="circle"))
    assert "follows from the utility label 'digit'" in follows


def test_missing_labels_and_ids_are_counted(tmp_path: Path) -> None:
    columns = table_columns()
    columns["income"] = pa.array([None, "?", *(["low", "high"] * 29)])
    columns["who"] = pa.array([*range(59), None])
    text = told(check(write(tmp_path / "m.parquet", **columns), utility="income", id="who"))
    assert "row 0: 2 labels are missing" in text and "row 59: 1 id is missing" in text


def test_numbers_spoilt_by_one_word_are_noticed(tmp_path: Path) -> None:
    lines = ["v,y", *(f"{row}.5,{'ab'[row % 2]}" for row in range(40))]
    lines[13] = "NA,a"
    (tmp_path / "t.csv").write_text("\n".join(lines))
    assert "'NA' (line 14) counts as missing" in told(check(tmp_path / "t.csv", utility="y"))


def test_a_missing_or_broken_file_is_one_problem(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"no")
    assert len(check(tmp_path / "x.parquet")) == 1
    assert check(tmp_path / "gone.csv")[0].severity == "error"


def test_subjects_in_both_parts_are_told(tmp_path: Path) -> None:
    for part in ("train", "test"):
        write(tmp_path / "set" / f"{part}.parquet", **table_columns(), who=pa.array(np.arange(60) // 2))
    text = told(check(tmp_path / "set", utility="income", private="sex", id="who"))
    assert "30 subjects (for instance '0') are in both the train and the test part" in text
