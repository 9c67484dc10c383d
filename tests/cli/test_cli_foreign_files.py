"""``audit --release --owner`` on files as people have them; and what is wrong with a file is one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from desk import Call

from sfumato.testing.made_up_people import made_up_people

PEOPLE = 50
NAMES = ("vendor", "train", "control")
Columns = Mapping[str, Any]


def people(count: int = PEOPLE) -> list[dict[str, list[str]]]:
    """A release that is the owner's rows, the owner's, and the held-out ones, as text."""
    parts = [made_up_people(count, seed) for seed in (1, 1, 2)]
    return [
        {name: ["" if str(value) == "nan" else str(value) for value in values] for name, values in part.items()}
        for part in parts
    ]


def lines(table: Columns, delimiter: str = ",", comma: bool = False) -> str:
    rows = [delimiter.join(table), *(delimiter.join(row) for row in zip(*table.values(), strict=True))]
    text = "\n".join(rows) + "\n"
    return text.replace(".", ",") if comma else text


def save_delimited(suffix: str, delimiter: str, comma: bool = False, mark: bool = False) -> Callable[[Path], None]:
    def save(folder: Path) -> None:
        for name, table in zip(NAMES, people(), strict=True):
            text = ("\ufeff" if mark else "") + lines(table, delimiter, comma)
            (folder / f"{name}.{suffix}").write_text(text, encoding="utf-8")

    return save


def save_npz(folder: Path) -> None:
    for name, table in zip(NAMES, people(), strict=True):
        np.savez(folder / f"{name}.npz", **{key: np.array(values) for key, values in table.items()})


def save_matrices(folder: Path) -> None:
    """Numbers alone, on scales that differ from file to file."""
    parts = [np.random.default_rng(seed).normal(size=(PEOPLE, 6)) for seed in (1, 1, 2)]
    for name, part in zip(NAMES, parts, strict=True):
        np.savez(folder / f"{name}.npz", x=part)


def save_parquet(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, seed in zip(NAMES, (1, 1, 2), strict=True):
        table = {key: pa.array(values, from_pandas=True) for key, values in made_up_people(PEOPLE, seed).items()}
        pq.write_table(pa.table(table), folder / f"{name}.parquet")


def save_pictures(folder: Path) -> None:
    from PIL import Image

    for name, seed in zip(NAMES, (1, 1, 2), strict=True):
        rng = np.random.default_rng(seed)
        (folder / name).mkdir()
        for number in range(PEOPLE):
            picture = rng.integers(0, 256, (8, 8), dtype=np.uint8)
            Image.fromarray(picture).save(folder / name / f"{number:03d}.png")


def save_intervals(folder: Path) -> None:
    """The owner's ages in intervals, the release's as numbers."""
    for name, table in zip(NAMES, people(), strict=True):
        if name != "vendor":
            table["age"] = ['"(17, 50]"' if int(age) <= 50 else '"(50, 90]"' for age in table["age"]]
        (folder / f"{name}.csv").write_text(lines(table))


def save_texts(folder: Path) -> None:
    """Numbers that the release writes as text with spaces and zeros, under quotes."""
    for name, table in zip(NAMES, people(), strict=True):
        if name == "vendor":
            table["age"] = [f'" {age}.0 "' for age in table["age"]]
        (folder / f"{name}.csv").write_text(lines(table))


FORMATS: dict[str, tuple[Callable[[Path], None], str]] = {
    "tabs": (save_delimited("tsv", "\t"), ".tsv"),
    "semicolons": (save_delimited("csv", ";"), ".csv"),
    "semicolons and decimal commas": (save_delimited("csv", ";", comma=True), ".csv"),
    "bars": (save_delimited("txt", "|"), ".txt"),
    "a byte order mark": (save_delimited("csv", ",", mark=True), ".csv"),
    "Parquet": (save_parquet, ".parquet"),
    "npz of columns": (save_npz, ".npz"),
    "npz of a matrix": (save_matrices, ".npz"),
    "folders of pictures": (save_pictures, ""),
    "intervals on one side": (save_intervals, ".csv"),
    "numbers as text": (save_texts, ".csv"),
}


def command(suffix: str, *more: str) -> tuple[str, ...]:
    of = [f"{name}{suffix}" for name in NAMES]
    files = ("--release", of[0], "--owner", of[1], "--holdout", of[2])
    return ("audit", *files, "--effort", "smoke", "--jobs", "1", "-q", "--out", "run", *more)


@pytest.mark.parametrize("form", FORMATS)
def test_copies_are_found_in_any_form(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    save, suffix = FORMATS[form]
    monkeypatch.chdir(tmp_path)
    save(tmp_path)
    ended = call(*command(suffix, "--json"))
    assert ended.code == 0, ended.err
    worst = json.loads(ended.out)["worst"]
    assert {"membership", "copies"} <= set(worst)
    least = 0.9 if form != "intervals on one side" else 0.6
    for question in ("membership", "copies"):
        assert worst[question]["leakage"] >= least, (question, worst[question])
    page = call("report", "run")
    assert page.code == 0, page.err


def test_pictures_that_belong_to_nobody_leak_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    save_pictures(tmp_path)
    (tmp_path / "vendor").rename(tmp_path / "copied")
    (tmp_path / "train").rename(tmp_path / "vendor")
    save_other(tmp_path / "train")
    ended = call(*command("", "--json"))
    assert ended.code == 0, ended.err
    for question, score in json.loads(ended.out)["worst"].items():
        assert score["leakage_ci"][0] <= 0.05, question


def save_other(folder: Path) -> None:
    from PIL import Image

    folder.mkdir()
    rng = np.random.default_rng(7)
    for number in range(PEOPLE):
        Image.fromarray(rng.integers(0, 256, (8, 8), dtype=np.uint8)).save(folder / f"{number:03d}.png")


def other_columns(folder: Path) -> None:
    (folder / "vendor.csv").write_text("a;b\n" + "1;2\n" * PEOPLE)


def overlap(folder: Path) -> None:
    (folder / "control.csv").write_text((folder / "train.csv").read_text())


def empty(folder: Path) -> None:
    (folder / "vendor.csv").write_text("")


def header_alone(folder: Path) -> None:
    (folder / "train.csv").write_text((folder / "train.csv").read_text().splitlines()[0] + "\n")


def one_row(folder: Path) -> None:
    (folder / "control.csv").write_text("\n".join((folder / "control.csv").read_text().splitlines()[:2]) + "\n")


def ragged(folder: Path) -> None:
    (folder / "vendor.csv").write_text((folder / "vendor.csv").read_text() + "1,2\n")


def no_text(folder: Path) -> None:
    (folder / "vendor.csv").write_bytes("größe,alter\nä,1\n".encode("latin-1") * 40)


def missing_column(folder: Path) -> None:
    for name in NAMES:
        rows = (folder / f"{name}.csv").read_text().splitlines()
        place = rows[0].split(",").index("diagnosis")
        emptied = [",".join(c if at != place else "" for at, c in enumerate(row.split(","))) for row in rows[1:]]
        (folder / f"{name}.csv").write_text("\n".join([rows[0], *emptied]) + "\n")


def nothing_there(folder: Path) -> None:
    (folder / "vendor.csv").unlink()


def not_a_table(folder: Path) -> None:
    (folder / "vendor.csv").write_bytes(bytes(range(256)) * 40)


WRONG: dict[str, tuple[Callable[[Path], None], tuple[str, ...], int, str]] = {
    "other columns": (other_columns, (), 3, "has none of the columns of train.csv (there: a, b; here: age, sex"),
    "held-out people who are the owner's": (overlap, (), 3, "50 of the 50 rows of control.csv are also in train.csv"),
    "an empty file": (empty, (), 3, "vendor.csv is empty"),
    "a header alone": (header_alone, (), 3, "train.csv has no rows"),
    "one row": (one_row, (), 3, "control.csv has 1 row: at least 20"),
    "a short line": (ragged, (), 3, "vendor.csv cannot be read as a table"),
    "another encoding": (no_text, (), 3, "vendor.csv cannot be read as a table"),
    "bytes": (not_a_table, (), 3, "vendor.csv"),
    "no such file": (nothing_there, (), 3, "vendor.csv does not exist"),
    "a private column without values": (
        missing_column,
        ("--private", "diagnosis"),
        3,
        "every value is missing in the private column 'diagnosis'",
    ),
    "an unknown column": (lambda _: None, ("--private", "diagnos"), 2, "did you mean 'diagnosis'"),
    "an unknown name of people": (lambda _: None, ("--id", "person"), 2, "unknown column"),
    "a program that is not there": (lambda _: None, ("--pipeline", "nowhere {in} {out}"), 2, "no program 'nowhere'"),
    "a pipeline without places": (lambda _: None, ("--pipeline", "cp a b"), 2, "lacks {in} and {out}"),
    "a pipeline for several": (lambda _: None, ("--pipeline", "cp {in} {out}", "--release", "train2.csv"), 2, "alone"),
}


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save_delimited("csv", ",")(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_a_file_is_one_sentence_and_nothing_is_written(case: str, tables: Path, call: Call) -> None:
    spoil, more, code, said = WRONG[case]
    spoil(tables)
    ended = call(*command(".csv", *more))
    assert ended.code == code, ended.err
    assert said in ended.err
    assert len(ended.err.strip().splitlines()) == 1
    assert not (tables / "run").exists() and not (tables / "runs").exists()


def test_a_release_larger_than_the_owners_records_is_audited(tables: Path, call: Call) -> None:
    head, *rows = (tables / "vendor.csv").read_text().splitlines()
    (tables / "vendor.csv").write_text("\n".join([head, *rows * 5]) + "\n")
    ended = call(*command(".csv", "--json"))
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["worst"]["copies"]["leakage"] >= 0.9


def test_ten_thousand_categories_and_columns_without_values_are_audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, table in zip(NAMES, people(400), strict=True):
        table["code"] = [f"c{value}" for value in rng.integers(0, 10_000, 400)]
        table["empty"] = [""] * 400
        (tmp_path / f"{name}.csv").write_text(lines(table))
    ended = call(*command(".csv", "--json"))
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert {"attack": "column empty", "reason": "every value is missing"} in found["skipped"]
    assert any("column code" in note and "in vendor.csv alone" in note for note in found["notes"])


def test_a_pattern_that_the_shell_has_expanded_names_several_releases(tables: Path, call: Call) -> None:
    """``--release *.csv``: the owner's and the held-out records lie beside the releases, and are none."""
    (tables / "other.csv").write_text(lines(people()[2]))
    files = ("control.csv", "other.csv", "train.csv", "vendor.csv")
    whose = ("--owner", "train.csv", "--holdout", "control.csv", "--effort", "smoke", "--jobs", "1", "-q")
    ended = call("audit", "--release", *files, *whose, "--out", "run", "--json")
    assert ended.code == 0, ended.err
    assert [point["point"] for point in json.loads(ended.out)["points"]] == ["other", "vendor"]
    table = call("audit", "--release", *files, *whose, "--out", "run").out
    assert table.index("vendor") < table.index("other")  # what leaks most comes first
    spoilt = call("audit", "--release", "vendor.csv", "run", *whose)
    assert spoilt.code == 2 and "either a run or a release: leave out run" in spoilt.err
    assert call("audit", "run", "other.csv").code == 2


def test_a_command_makes_shadow_releases(tables: Path, call: Call) -> None:
    ended = call(*command(".csv", "--pipeline", "cp {in} {out}"))
    assert ended.code == 0, ended.err
    assert "member-shadow-ratio" in ended.out and "not run: member-shadow" not in ended.out
    without = call(*command(".csv", "--out", "other"))
    assert "not run: member-shadow-ratio (needs releases of other records by the same maker: give the" in without.out
