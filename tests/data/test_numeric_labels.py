"""How a label that is a number is told from a class, read, and left out where it is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sfumato.core.errors import DataError, UsageError
from sfumato.data import check, domain_draft, load, load_splits

Rows = list[tuple[str, ...]]


def written(folder: Path, columns: dict[str, list[object]]) -> Path:
    file = folder / "people.csv"
    rows = zip(*columns.values(), strict=True)
    file.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return file


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng, n = np.random.default_rng(0), 400
    pay: list[object] = [*(1000 + 7 * np.arange(n - 40)).tolist(), *["N"] * 40]
    columns: dict[str, list[object]] = {
        "a": rng.normal(size=n).round(4).tolist(),
        "age": rng.integers(0, 96, n).tolist(),
        "code": rng.integers(1, 40, n).tolist(),
        "rate": rng.choice([0.5, 1.0, 1.5], n).tolist(),
        "pay": pay,
        "mixed": [*pay[:-1], "x"],
        "job": rng.choice(["cook", "clerk"], n).tolist(),
    }
    return written(tmp_path_factory.mktemp("numbers"), columns)


@pytest.mark.parametrize(
    ("label", "number"),
    [("age", True), ("code", False), ("rate", True), ("pay", True), ("job", False), ("code:number", True),
     ("age:class", False), ("age >= 40", False), ("mixed", False)],
)  # fmt: skip
def test_quantities_are_numbers_and_codes_are_classes(label: str, number: bool, file: Path) -> None:
    schema = load(file, x=["a"], utility=[label]).schema
    assert (list(schema.numbers) == [label.partition(":")[0]]) == number


def test_values_come_back_as_the_file_has_them(file: Path) -> None:
    data = load(file, x=["a"], utility=["age", "rate"])
    lines = [line.split(",") for line in file.read_text().splitlines()[1:]]
    assert data.numbers("age").tolist() == [float(line[1]) for line in lines]
    assert data.numbers("rate") == pytest.approx([float(line[3]) for line in lines], abs=1e-6)


def test_rows_without_a_number_are_left_out_and_counted(file: Path) -> None:
    data = load(file, x=["a"], utility=["pay"])
    assert (len(data), data.left_out, data.schema.numbers["pay"].absent) == (360, 40, "N")
    splits = load_splits(file, x=["a"], utility=["pay"], private=["job"])
    assert sum(len(part) for part in splits.parts.values()) == 360
    assert all(part.left_out == 40 and part.complete.all() for part in splits.parts.values())


def test_who_goes_where_does_not_hang_on_the_gaps(file: Path) -> None:
    with_pay, without = (load_splits(file, x=["a"], utility=[label], private=["job"]) for label in ("pay", "age"))
    assert set(with_pay.victim.ids.tolist()) <= set(without.victim.ids.tolist())


def test_a_named_label_and_its_kind_survive_the_schema(file: Path) -> None:
    data = load(file, x=["a"], utility=["level=code:number"])
    again = load(file, schema=data.schema)
    assert data.schema.sources == {"level": "code:number"}
    assert (again.numbers("level") == data.numbers("level")).all()


def test_text_where_a_number_was_is_named(file: Path, tmp_path: Path) -> None:
    schema = load(file, x=["a"], utility=["age"]).schema
    bad = written(tmp_path, {"a": [0.1, 0.2], "age": [3, "old"]})
    with pytest.raises(DataError, match=r"people\.csv, column 'age', line 3: 'old' is not a number, and 'age' is one"):
        load(bad, schema=schema)


def test_two_kinds_of_other_text_are_no_number(file: Path) -> None:
    with pytest.raises(DataError, match="column 'mixed', line 401: 'N', 'x' are no numbers, as ':number' requires"):
        load(file, x=["a"], utility=["mixed:number"])


def test_the_answer_to_a_question_is_no_number(file: Path) -> None:
    with pytest.raises(UsageError, match="the answer to a question is yes or no: leave out ':number'"):
        load(file, x=["a"], utility=["age >= 40:number"])


def test_whole_numbers_of_named_pictures_are_codes() -> None:
    assert not load("digits", utility=["label"], limit=50).schema.numbers


def test_check_counts_what_is_left_out(file: Path) -> None:
    problems = [str(one) for one in check(file, x=["a"], utility=["pay"], private=["job"])]
    assert any("40 rows have no number ('N' counts as none) and are left out" in one for one in problems)
    assert not any("classes" in one for one in problems)


def test_a_domain_declares_a_number_and_its_range(file: Path, tmp_path: Path) -> None:
    domain = tmp_path / "domain.toml"
    domain.write_text(domain_draft(file, x=["a"], utility=["age"], private=["job"]).replace("draft = true\n", ""))
    assert '[columns.age]\nkind = "numeric"' in domain.read_text()
    scale = load(file, x=["a"], utility=["age"], private=["job"], domain=domain).schema.numbers["age"]
    assert (scale.low, scale.high, scale.whole, scale.strict) == (0.0, 95.0, True, True)
    domain.write_text(domain.read_text().replace("high = 95", "high = 90"))
    with pytest.raises(DataError, match="lies outside the declared range 0 to 90"):
        load(file, x=["a"], utility=["age"], private=["job"], domain=domain)
