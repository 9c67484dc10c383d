"""Rules between columns: what a domain may declare, which records break one, and that a domain is written as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sfumato.core.errors import DataError, UsageError
from sfumato.core.schema import Schema
from sfumato.data import load, load_splits
from sfumato.data.domain import parse_domain
from sfumato.data.drafted_domain import draft

COLUMNS = """
columns.age = {kind = "numeric", low = 0, high = 99, integer = true}
columns.pay = {kind = "numeric", low = 0, high = 900, absent = ["N"]}
columns.job = {kind = "categorical", categories = ["cook", "clerk"], nullable = true}
columns.in = {kind = "numeric", low = 0, high = 9}
columns.out = {kind = "numeric", low = 0, high = 9}
"""
CHILD = """
[[rules]]
if = { age = "..14" }
then = { pay = "N", job = "missing" }
exactly = true
"""
TABLE = "age,pay,job,in,out\n7,N,,1,2\n40,100,cook,2,3\n55,0,clerk,3,4\n"


def written(folder: Path, table: str, rules: str = CHILD) -> Path:
    (folder / "people.csv").write_text(table)
    (folder / "domain.toml").write_text(COLUMNS + rules)
    return folder / "people.csv"


def opened(path: Path, **options: object) -> Schema:
    return load(path, utility=[], private=[], domain=path.parent / "domain.toml").schema


def test_rules_are_read_and_stored_with_the_schema(tmp_path: Path) -> None:
    schema = opened(written(tmp_path, TABLE))
    (rule,) = schema.rules
    assert str(rule) == "if and only if age is 0..14, then pay is missing and job is missing"
    assert Schema.from_json(schema.to_json()) == schema
    older = {key: value for key, value in schema.to_json().items() if key != "rules"}
    assert Schema.from_json(older).rules == (), "a run of an older version has none"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("12,5,,1,2", "line 5"),
        ("13,N,cook,1,2", "line 5"),
        ("14,N,,1,2\n15,N,cook,1,2", "line 6"),
        ("30,9,,1,2", "line 5"),
    ],
)
def test_a_record_that_breaks_a_rule_is_named(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(DataError, match=rf"{said}.*breaks a rule of the domain: if and only if age is 0\.\.14"):
        opened(written(tmp_path, TABLE + line + "\n"))


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ('then = { job = "cook" }', "if must name columns"),
        ('if = { age = "..14" }', "then must name columns"),
        ('if = { wage = "1" }\nthen = { job = "cook" }', "wage"),
        ('if = { job = "cok" }\nthen = { age = "3" }', "cook"),
        ('if = { age = "old" }\nthen = { job = "cook" }', "'old' is no number or range"),
        ('if = { age = "100.." }\nthen = { job = "cook" }', "outside the declared range 0 to 99"),
        ('if = { age = "missing" }\nthen = { job = "cook" }', "never missing"),
        ('if = { age = "..3" }\nthen = { age = "4" }', "in if and in then"),
        ('if = { age = "..3" }\nthen = { in = "4" }\n[[sums]]\ncolumns = ["in", "out"]\ntotal = 9', "only one of them"),
        ('if = { age = "..3" }\nthen = { job = "cook" }\nexactly = "yes"', "exactly must be true or false"),
        ('when = { age = "..3" }', "when"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(rule: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        parse_domain(f"{COLUMNS}\n[[rules]]\n{rule}\n", "domain.toml")


def test_a_domain_written_again_declares_the_same(tmp_path: Path) -> None:
    schema = opened(written(tmp_path, TABLE))
    again = parse_domain(draft(schema, "people"), "again")
    assert again.rules == schema.rules


def test_held_out_rows_are_the_attackers_and_the_victims(tmp_path: Path) -> None:
    rows = [f"{20 + place % 50},{place % 900},cook,{place % 9},2" for place in range(200)]
    path = written(tmp_path, "\n".join([TABLE.splitlines()[0], *rows]) + "\n", "")
    other = tmp_path / "others.csv"
    other.write_text("\n".join([TABLE.splitlines()[0], *(row.replace("cook", "clerk") for row in rows)]) + "\n")
    options = {"utility": [], "private": [], "domain": tmp_path / "domain.toml"}
    parts = load_splits(path, holdout=other, **options)
    assert len(parts.owner) == 200 and len(parts.attacker) + len(parts.victim) == 200
    cook = [place for place, column in enumerate(parts.schema.columns) if column.name == "job"]
    start = sum(column.width for column in parts.schema.columns[: cook[0]])
    assert parts.owner.x[:, start].all() and not parts.victim.x[:, start].any() and not parts.attacker.x[:, start].any()
    assert min(len(parts.attacker), len(parts.victim)) > 50
    assert np.array_equal(parts.owner.x, load(path, **options).x), "all of the file, in its order"
    with pytest.raises(UsageError, match="leave out --shares"):
        load_splits(path, holdout=other, shares=(0.9,), **options)
    other.write_text("age,pay,job,in\n30,1,cook,1\n")
    with pytest.raises(UsageError, match="lacks column 'out'"):
        load_splits(path, holdout=other, **options)


def test_nobody_is_held_out_from_their_own_file(tmp_path: Path) -> None:
    head, *_ = TABLE.splitlines()
    path = written(tmp_path, "\n".join([f"who,{head}", *(f"p{n},30,{n},cook,1,2" for n in range(40))]) + "\n", "")
    other = tmp_path / "others.csv"
    other.write_text("\n".join([f"who,{head}", *(f"p{n},30,{n},cook,1,2" for n in range(39, 90))]) + "\n")
    with pytest.raises(UsageError, match="people of the held-out file are in the other one too"):
        load_splits(path, holdout=other, utility=[], private=[], id="who", domain=tmp_path / "domain.toml")
