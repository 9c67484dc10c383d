"""A declared domain decides the encoding, and what does not fit it is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from data_samples import table_columns, write

from sfumato.core.errors import DataError, UsageError
from sfumato.core.schema import FixedSum, Schema
from sfumato.data import check, decode_table, domain_draft, load, load_splits, stream
from sfumato.data.domain import Domain, built_in, open_domain, parse_domain

DOMAIN = """
[columns.age]
kind = "numeric"
low = 0
high = 120
integer = true

[columns.height]
kind = "numeric"
low = 100
high = 250

[columns.job]
kind = "categorical"
categories = ["clerk", "cook", "pilot"]
nullable = true

[columns.sex]
kind = "categorical"
categories = ["m", "f"]

[columns.income]
kind = "categorical"
categories = ["low", "high"]
"""


@pytest.fixture
def domain(tmp_path: Path) -> Path:
    path = tmp_path / "domain.toml"
    path.write_text(DOMAIN)
    return path


def test_a_domain_decides_ranges_categories_and_classes(people: Path, domain: Path) -> None:
    data = load(people, utility="income", private="sex", domain=domain)
    age, height, job = data.schema.columns
    assert (age.low, age.high, age.integer, height.low, height.high) == (0.0, 120.0, True, 100.0, 250.0)
    assert job.categories == ("clerk", "cook", "pilot") and job.nullable
    assert data.schema.utility == {"income": ("low", "high")} and data.schema.private == {"sex": ("m", "f")}
    assert data.schema.declared and data.x.shape == (60, 1 + 1 + 4)
    assert Schema.from_json(data.schema.to_json()) == data.schema
    decoded = decode_table(data.x, data.schema)
    assert decoded.column("age").to_pylist() == load_column(people, "age")


def load_column(path: Path, name: str) -> list[object]:
    import pyarrow.parquet as pq

    values: list[object] = pq.read_table(path).column(name).to_pylist()
    return values


def test_the_schema_does_not_depend_on_the_records(tmp_path: Path, domain: Path) -> None:
    schemas = [
        load(write(tmp_path / f"{seed}.parquet", **table_columns(seed=seed)), utility="income", domain=domain).schema
        for seed in (1, 2)
    ]
    assert schemas[0] == schemas[1]


def test_without_a_domain_nothing_is_declared(people: Path) -> None:
    assert not load(people, utility="income").schema.declared


def test_the_splits_take_a_domain_as_well(people: Path, domain: Path) -> None:
    splits = load_splits(people, utility="income", private="sex", domain=domain)
    assert all(part.schema.declared for part in (splits.owner, splits.attacker, splits.victim))


def test_a_question_needs_no_declared_classes_and_whole_numbers_are_classes(people: Path, domain: Path) -> None:
    schema = load(people, x="height", utility=["age:class", "old=age >= 40"], domain=domain).schema
    assert schema.utility["old"] == ("no", "yes") and len(schema.utility["age"]) == 121
    with pytest.raises(DataError, match=r"columns.height.*measures.*height >= 175"):
        load(people, x="age", utility="height:class", domain=domain)
    assert load(people, x="age", utility="height", domain=domain).schema.numbers["height"].strict


def test_schema_and_domain_exclude_each_other(people: Path, domain: Path) -> None:
    schema = load(people, utility="income", domain=domain).schema
    with pytest.raises(UsageError, match="domain come with the schema"):
        load(people, schema=schema, domain=domain)


MISFITS = {
    "a number above the range": ({"age": 121}, r"column 'age', row 7: 121 lies outside .* 0 to 120.*clip = true"),
    "a number below the range": ({"height": 99.5}, r"'height', row 7: 99.5 lies outside"),
    "an unknown category": ({"job": "spy"}, r"'job', row 7: 'spy' is not among the 3 .*declared domain"),
    "a gap": ({"sex": None}, r"'sex', row 7: the value is missing, which the domain rules out.*nullable"),
    "a broken number": ({"age": 30.5}, r"'age', row 7: 30.5 is not a whole number"),
    "an unknown class": ({"income": "middle"}, r"'income', row 7: 'middle' is not a class of 'income' \(low, high\)"),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_a_value_outside_the_domain_is_named_with_its_row(misfit: str, tmp_path: Path, domain: Path) -> None:
    changes, message = MISFITS[misfit]
    columns = {name: values.to_pylist() for name, values in table_columns().items()}  # type: ignore[attr-defined]
    for name, value in changes.items():
        columns[name][7] = value
    path = write(tmp_path / "odd.parquet", **{name: pa.array(values) for name, values in columns.items()})
    with pytest.raises(DataError, match=message):
        load(path, utility="income", domain=domain)
    if misfit != "an unknown class":
        schema = load(write(tmp_path / "even.parquet", **table_columns()), utility="income", domain=domain).schema
        with pytest.raises(DataError, match=message):
            list(stream(path, schema, batch_rows=5))
    (problem,) = [one for one in check(path, utility="income", domain=domain) if one.severity == "error"]
    assert "row 7" in str(problem)


def test_numbers_are_clipped_only_where_the_domain_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", age=[0, 50, 500], y=["a", "b", "a"])
    text = '[columns.age]\nkind = "numeric"\nlow = 10\nhigh = 110\nclip = {}\n[columns.y]\nkind = "categorical"\n'
    text += 'categories = ["a", "b"]\n'
    data = load(path, utility="y", domain=parse_domain(text.format("true"), "d"))
    assert data.x[:, 0].tolist() == pytest.approx([0.0, 0.4, 1.0])
    with pytest.raises(DataError, match="row 0"):
        load(path, utility="y", domain=parse_domain(text.format("false"), "d"))


AGE = '[columns.age]\nkind = "numeric"\nlow = 0\nhigh = 9\n'
WRONG = {
    "no TOML": ("[columns", "not valid TOML"),
    "no column": ("", r"declares no column"),
    "an unknown table": ("[column.age]\n" + AGE, r"unknown key 'column': did you mean 'columns'"),
    "an unknown key": (AGE + "hihg = 9\n", r"\[columns.age\]: unknown key 'hihg': did you mean 'high'"),
    "an unknown kind": (
        '[columns.age]\nkind = "number"\n',
        r"kind must be numeric, categorical, date or signal, got 'number'",
    ),
    "no kind": ("[columns.age]\nlow = 0\n", r"kind must be .*got None"),
    "a missing end": ('[columns.age]\nkind = "numeric"\nlow = 0\n', r"needs low and high; 'high' is missing"),
    "a text as an end": (AGE.replace("9", '"9"'), r"high must be a finite number, got '9'"),
    "an infinite end": (AGE.replace("9", "inf"), r"high must be a finite number"),
    "a flag as an end": (AGE.replace("9", "true"), r"high must be a finite number"),
    "a number as a flag": (AGE + "integer = 1\n", r"integer must be true or false, got 1"),
    "ends in the wrong order": (AGE.replace("9", "-9"), r"low = 0 and high = -9; .*wrong order"),
    "a constant": (AGE.replace("9", "0"), r"is constant: leave it out"),
    "broken ends of whole numbers": (AGE.replace("9", "9.5") + "integer = true\n", r"whole numbers, got 0 and 9.5"),
    "a category twice": (
        '[columns.job]\nkind = "categorical"\ncategories = ["a", "b", "a"]\n',
        r"\[columns.job\]: the category 'a' is listed twice",
    ),
    "one category": ('[columns.job]\nkind = "categorical"\ncategories = ["a"]\n', r"one category only.*constant"),
    "a missing value as a category": (
        '[columns.job]\nkind = "categorical"\ncategories = ["a", "?"]\n',
        r"stand for a missing value: write nullable = true",
    ),
    "categories that are numbers": ('[columns.job]\nkind = "categorical"\ncategories = [1, 2]\n', r"a list of strings"),
    "a signal's range": ('[columns.s]\nkind = "signal"\nranges = [[1, 1]]\n', r"range 0 is \[1, 1\]"),
    "a range of three": ('[columns.s]\nkind = "signal"\nranges = [[1, 2, 3]]\n', r"a list of pairs"),
    "a sum of unknown columns": (
        AGE + '[[sums]]\ncolumns = ["age", "agee"]\ntotal = 5\n',
        r"\[\[sums\]\] 0: unknown declared column 'agee': did you mean 'age'",
    ),
    "a sum of one": (AGE + '[[sums]]\ncolumns = ["age"]\ntotal = 5\n', r"two columns or more"),
    "a sum without a total": (AGE + '[[sums]]\ncolumns = ["age", "age"]\n', r"total a number or a column's name"),
    "a sum that cannot be": (
        AGE + AGE.replace("age", "b") + '[[sums]]\ncolumns = ["age", "b"]\ntotal = 19\n',
        r"between 0 and 18, never to the total \(19 to 19\)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_domain_is_refused_with_its_place(case: str) -> None:
    text, message = WRONG[case]
    with pytest.raises(DataError, match=message):
        parse_domain(text, "d.toml")


def test_a_domain_and_a_file_that_do_not_fit_are_refused(people: Path, domain: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"domain.toml: unknown column of .*people.parquet 'agee': did you mean 'age'"):
        load(
            people, utility="income", domain=parse_domain(DOMAIN.replace("columns.age", "columns.agee"), "domain.toml")
        )
    some = parse_domain(AGE, "some.toml")
    with pytest.raises(DataError, match=r"some.toml does not declare column 'height' of .*people.parquet"):
        load(people, x=["age", "height"], utility="income", domain=some)
    with pytest.raises(DataError, match=r"does not declare the label column 'income'"):
        load(people, x="age", utility="income", domain=some)
    with pytest.raises(DataError, match=r"nowhere.toml does not exist: draft"):
        open_domain(tmp_path / "nowhere.toml")
    with pytest.raises(DataError, match=r"is not a TOML file"):
        open_domain(tmp_path)


def test_fixed_sums_are_checked_in_the_records_and_travel_with_the_schema(tmp_path: Path) -> None:
    text = "".join(f'[columns.{name}]\nkind = "numeric"\nlow = 0\nhigh = 10\n' for name in "abt")
    text += '[columns.y]\nkind = "categorical"\ncategories = ["n", "y"]\n[[sums]]\ncolumns = ["a", "b"]\ntotal = "t"\n'
    domain = parse_domain(text, "d.toml")
    fine = write(tmp_path / "fine.parquet", a=[1.0, 2.5], b=[2.0, 2.5], t=[3.0, 5.0], y=["n", "y"])
    schema = load(fine, utility="y", domain=domain).schema
    assert schema.sums == (FixedSum(("a", "b"), "t"),) and Schema.from_json(schema.to_json()) == schema
    assert load(fine, x=["a", "t"], utility="y", domain=domain).schema.sums == (), "b is not part of x"
    wrong = write(tmp_path / "wrong.parquet", a=[1.0, 2.5], b=[2.0, 2.5], t=[3.0, 6.0], y=["n", "y"])
    with pytest.raises(DataError, match=r"wrong.parquet, row 1: a \+ b is 5, but must be 6 by the declared domain"):
        load(wrong, utility="y", domain=domain)


def test_signals_are_declared_by_channel(tmp_path: Path) -> None:
    windows = np.random.default_rng(0).uniform(-1, 1, (6, 2, 4)).astype(np.float32)
    path = write(tmp_path / "s.parquet", s=list(windows.reshape(6, -1)), y=["a", "b"] * 3)
    text = '[columns.s]\nkind = "signal"\nranges = {}\nclip = {}\n[columns.y]\nkind = "categorical"\n'
    text += 'categories = ["a", "b"]\n'

    def read(ranges: str, clip: str = "false") -> Schema:
        return load(path, x="s:2x4", utility="y", domain=parse_domain(text.format(ranges, clip), "d")).schema

    schema = read("[[-1, 1], [-2, 2]]")
    assert schema.declared and schema.strict and schema.ranges == ((-1.0, 1.0), (-2.0, 2.0))
    assert Schema.from_json(schema.to_json()) == schema
    assert read("[[-1, 1]]").ranges == ((-1.0, 1.0),) * 2
    with pytest.raises(DataError, match=r"'s', row \d: .* in channel 1 lies outside its declared range -0.1 to 0.1"):
        read("[[-1, 1], [-0.1, 0.1]]")
    assert not read("[[-0.1, 0.1]]", "true").strict
    with pytest.raises(DataError, match="3 ranges for 2 channels"):
        read("[[-1, 1], [-1, 1], [-1, 1]]")


def test_lists_of_numbers_are_declared_as_one_column_or_by_place(tmp_path: Path) -> None:
    path = write(tmp_path / "v.parquet", v=[[0.5, 3.0], [0.1, 2.0]], y=["a", "b"])
    text = (
        '[columns.v]\nkind = "numeric"\nlow = 0\nhigh = 1\n[columns.y]\nkind = "categorical"\ncategories = ["a", "b"]\n'
    )
    with pytest.raises(DataError, match=r"'v\[1\]', row 0: 3 lies outside"):
        load(path, utility="y", domain=parse_domain(text, "d"))
    text += '[columns."v[1]"]\nkind = "numeric"\nlow = 0\nhigh = 4\n'
    assert load(path, utility="y", domain=parse_domain(text, "d")).x.tolist() == [
        pytest.approx([0.5, 0.75]),
        pytest.approx([0.1, 0.5]),
    ]


def test_a_draft_says_where_it_comes_from_and_reads_back(people: Path) -> None:
    text = domain_draft(people, utility=["income", "old=age >= 40"], private="sex")
    assert "READ FROM ITS RECORDS" in text and "not private" in text
    drafted = parse_domain(text, "draft")
    inferred = load(people, utility="income", private="sex").schema
    again = load(people, utility="income", private="sex", domain=with_age(text)).schema
    assert [column.name for column in again.columns] == [column.name for column in inferred.columns]
    assert again.utility == inferred.utility and "age" not in drafted.columns, "a question's column is no part of x"
    assert not again.declared, "what was read from the records is not declared"
    assert load(people, utility="income", private="sex", domain=replace(with_age(text), draft=False)).schema.declared
    with pytest.raises(DataError, match="draft must be true or false"):
        parse_domain(text.replace("draft = true", 'draft = "yes"'), "d")


def with_age(text: str) -> Domain:
    return parse_domain(text + '[columns.age]\nkind = "numeric"\nlow = 0\nhigh = 99\ninteger = true\n', "draft")


def test_adult_brings_its_domain(real_data: Path) -> None:
    if not (real_data / "adult").is_dir():
        pytest.skip("SFUMATO_DATA has no adult")
    train = load("adult", utility="income", private=(), part="train")
    assert train.schema.declared and len(train.schema.columns) == 14 and train.schema.shape == (108,)
    assert len(load("adult", part="test").x) == 16_281, "the test part lies within the domain"
    assert domain_draft("adult").startswith("# The domain of adult, as declared.")


def test_adults_columns_under_another_name_are_not_declared(real_data: Path) -> None:
    if not (real_data / "adult").is_dir():
        pytest.skip("SFUMATO_DATA has no adult")
    columns = built_in("adult").names
    read = load(real_data / "adult", x=[name for name in columns if name != "income"], utility="income").schema
    unnamed = load(real_data / "adult", utility="income").schema
    known = load("adult", utility="income", private=()).schema
    assert not read.declared and known.declared
    assert [replace(column, strict=False, low=0.0, high=1.0) for column in known.columns] == [
        replace(column, low=0.0, high=1.0) for column in read.columns
    ], "the same columns, categories and gaps as in the records"
    assert list(unnamed.left_out) == ["fnlwgt"], "the domain has the survey weight, the records alone leave it out"


def test_a_folder_called_adult_with_other_columns_stays_undeclared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("train", "test"):
        write(tmp_path / "adult" / f"{part}.parquet", **table_columns())
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path))
    assert not load("adult").schema.declared
    assert "education-num" in built_in("adult").names
