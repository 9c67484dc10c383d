"""Many users: the table is checked line by line, and every user ends up with a run folder like any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from sfumato.auditing import Effort
from sfumato.core.errors import DataError, UsageError
from sfumato.core.run_folder import RunFolder, read_json
from sfumato.data import load, load_splits
from sfumato.mechanisms import load_mechanism
from sfumato.report import build_report
from sfumato.workflow import (
    UNAUDITED,
    audit_run,
    audit_users,
    fit_run,
    fit_users,
    is_users_folder,
    release_run,
    resolve,
)

TINY = Effort(attack_epochs=1, attack_width=16, attack_steps=2, task_epochs=1, candidates=20, threats=("attribute",))
QUICK: dict[str, Any] = {"steps": 50, "batch": 64}
HEAD = "user,private,utility,rows,budget\n"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("users") / "vae"
    data = {"source": "digits", "utility": ["odd"], "limit": 1500}
    fit_run(resolve("vae", data, {"epochs": 2}, seed=0), folder)
    return folder


def table(folder: Path, *lines: str) -> Path:
    (folder / "users.csv").write_text(HEAD + "\n".join(lines) + "\n")
    return folder / "users.csv"


def test_every_user_has_a_run_folder_that_can_be_audited_and_released(base: Path, tmp_path: Path) -> None:
    users = table(tmp_path, "ann,ge5,odd,0::8,20", "bob,odd,ge5;circle,1::8,", "eve,circle;small=digit < 3,odd,2::8,5")
    found = fit_users("filter-linear", users, base, tmp_path / "out", {**QUICK, "budget": 40.0})
    assert [user["user"] for user in found] == ["ann", "bob", "eve"]
    assert [user["budget"] for user in found] == [20.0, 40.0, 5.0]
    assert all(user["spent"] <= user["budget"] for user in found)
    assert read_json(tmp_path / "out" / "users.json") == found
    assert read_json(tmp_path / "out" / "front.json") == {"points": ["ann", "bob", "eve"]}
    for name in ("ann", "bob", "eve"):
        folder = tmp_path / "out" / name
        assert RunFolder.open(folder).done
        assert not (folder / "base").exists()
        assert (folder / "checkpoint" / "filter.safetensors").stat().st_size < 64 * 1024
    bob = load_mechanism(tmp_path / "out" / "bob")
    assert (list(bob.schema_.private), list(bob.schema_.utility)) == (["odd"], ["ge5", "circle"])
    scores = audit_run(tmp_path / "out" / "ann", effort=TINY)
    assert {score["target"] for score in scores["attacks"]} == {"ge5"}
    release_run(tmp_path / "out" / "ann", "digits", tmp_path / "released", warrant=UNAUDITED)
    assert pq.read_schema(tmp_path / "released" / "release.parquet").names == ["payload"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["ann,ge5,odd,0:400,0"], "line 2: budget '0' must be a number, 0.001 at least"),
        (["ann,ge5,odd,0:400,much"], "budget 'much'"),
        (["ann,ge5,odd,400:0:0,"], "rows '400:0:0' is no range"),
        (["ann,ge5,odd,5,"], "rows '5' is no range"),
        (["ann,ge5,odd,0:99999,"], "go beyond the owner's 8.. records"),
        (["ann,ge5,,0:400,"], "column 'utility' is missing or empty"),
        (["a/b,ge5,odd,0:400,"], "becomes a folder's name"),
        (["ann,ge5,odd,0::8,", "ann,odd,ge5,1::8,"], "line 3: user 'ann' is named twice"),
        (["ann,ge5,odd,0::8,", "bob,odd,ge5,4::8,", "eve,odd,ge5,0::4,"], "belongs to both 'ann' and 'eve'"),
        (["ann,odd,odd,0::8,"], "user 'ann': the private column 'odd' is a function of the utility column 'odd'"),
        (["ann,age,odd,0::8,"], "unknown label column of digits 'age'"),
        (["ann,ge5,odd,0:50,"], "user 'ann' has 50 records"),
        (["ann,ge5,odd,0:200,"], "user 'ann': column 'ge5' has one value only"),
        ([], "names no user"),
        (["base,ge5,odd,0::8,"], "and not 'base'"),
    ],
)
def test_a_line_that_cannot_be_is_named_and_nothing_is_left(
    base: Path, tmp_path: Path, lines: list[str], said: str
) -> None:
    with pytest.raises((DataError, UsageError), match=said.replace("(", r"\(")):
        fit_users("filter-linear", table(tmp_path, *lines), base, tmp_path / "out", QUICK)
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def wearers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Fifteen people with 110 rows each, and a base of their records."""
    folder = tmp_path_factory.mktemp("wearers")
    rng = np.random.default_rng(0)
    rows = []
    for row in range(1650):
        walks, old = rng.integers(2), rng.integers(2)
        x = ",".join(f"{0.2 * rng.normal() + place:.4f}" for place in (walks, old, 0.5))
        rows.append(f"p{row % 15},{x},{('sit', 'walk')[walks]},{('young', 'old')[old]}")
    (folder / "wear.csv").write_text("\n".join(["who,a,b,c,activity,age", *rows]) + "\n")
    data = {"source": str(folder / "wear.csv"), "x": ["a", "b", "c"], "utility": ["activity"], "id": "who"}
    fit_run(resolve("vae", {**data, "private": ["age"]}, {"epochs": 6, "latent": 3}, seed=0), folder / "vae")
    return folder / "wear.csv", folder / "vae"


def parts_of(wearers: tuple[Path, Path]) -> tuple[list[str], list[str]]:
    """Who is in the owner's part, and who is set aside."""
    splits = load_splits(str(wearers[0]), x=["a", "b", "c"], utility=["activity"], private=["age"], id="who", seed=0)
    owners = sorted(set(splits.owner.ids.tolist()))
    return owners, sorted({f"p{number}" for number in range(15)} - set(owners))


def by_id(folder: Path, *lines: str) -> Path:
    (folder / "users.csv").write_text("user,private,utility,id\n" + "\n".join(lines) + "\n")
    return folder / "users.csv"


def test_users_are_found_by_the_id_of_the_data(wearers: tuple[Path, Path], tmp_path: Path) -> None:
    (first, second, *_), (aside, *_) = parts_of(wearers)
    users = by_id(tmp_path, f"ann,age,activity,{first}", f"bob,activity,age,{second}", f"far,age,activity,{aside}")
    said: list[str] = []
    found = fit_users("filter-linear", users, wearers[1], tmp_path / "out", QUICK, warn=said.append)
    assert [(user["user"], user["records"]) for user in found] == [("ann", 110), ("bob", 110)]
    assert any("1 of 3 users get no filter (far): their records are set aside for the audit" in line for line in said)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["ann,age,activity,p99"], "user 'ann' has id 'p99', of whom wear has no record"),
        (["ann,age,activity,{own}", "bob,activity,age,{own};{other}"], "id '{own}' belongs to both 'ann' and 'bob'"),
        (["ann,age,activity,{aside}"], r"the records of all users \(ann\) are set aside"),
    ],
)
def test_ids_that_cannot_be_are_named(wearers: tuple[Path, Path], tmp_path: Path, lines: list[str], said: str) -> None:
    owners, aside = parts_of(wearers)
    names = {"own": owners[0], "other": owners[1], "aside": aside[0]}
    table = by_id(tmp_path, *(line.format(**names) for line in lines))
    with pytest.raises(DataError, match=said.format(**names)):
        fit_users("filter-linear", table, wearers[1], tmp_path / "out", QUICK)


def test_ids_need_a_base_that_knows_them(base: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="was fitted without --id"):
        fit_users("filter-linear", by_id(tmp_path, "ann,ge5,odd,3"), base, tmp_path / "out", QUICK)
    (tmp_path / "users.csv").write_text("user,private,utility\nann,ge5,odd\n")
    with pytest.raises(DataError, match="neither of the columns id and rows"):
        fit_users("filter-linear", tmp_path / "users.csv", base, tmp_path / "out", QUICK)


def test_a_folder_of_users_is_audited_and_reported_as_a_whole(wearers: tuple[Path, Path], tmp_path: Path) -> None:
    (first, second, *_), _ = parts_of(wearers)
    users = by_id(tmp_path, f"ann,age,activity,{first}", f"bob,activity,age,{second}")
    fit_users("filter-linear", users, wearers[1], tmp_path / "out", QUICK)
    assert is_users_folder(tmp_path / "out") and not is_users_folder(tmp_path / "out" / "ann")
    results = audit_users(tmp_path / "out", effort=TINY)
    assert [result["point"] for result in results] == ["ann", "bob"]
    assert list(results[0]["worst"]) == ["attribute:age"] and list(results[1]["worst"]) == ["attribute:activity"]
    before = (tmp_path / "out" / "ann" / "scores.json").stat().st_mtime_ns
    audit_users(tmp_path / "out", effort=TINY)  # nothing is done twice
    assert (tmp_path / "out" / "ann" / "scores.json").stat().st_mtime_ns == before
    page = build_report([tmp_path / "out"], tmp_path / "report.html").read_text()
    assert "ann" in page and "bob" in page


def test_users_share_any_run_as_their_base(wearers: tuple[Path, Path], tmp_path: Path) -> None:
    (first, second, *_), _ = parts_of(wearers)
    data = {"source": str(wearers[0]), "x": ["a", "b", "c"], "utility": ["activity"], "private": ["age"], "id": "who"}
    fit_run(resolve("leace", data, {}, seed=0), tmp_path / "leace")
    users = by_id(tmp_path, f"ann,age,activity,{first}", f"bob,age,activity,{second}")
    fit_users("filter-linear", users, tmp_path / "leace", tmp_path / "out", QUICK)
    assert (tmp_path / "out" / "base" / "fixed.json").is_file()
    assert not (tmp_path / "out" / "ann" / "base").exists()
    (tmp_path / "out").rename(tmp_path / "moved")
    assert load_mechanism(tmp_path / "moved" / "bob").transform(np.zeros((1, 3)), private={"age": [0]}).shape == (1, 3)


def test_only_filters_are_for_users(base: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ran is none"):
        fit_users("ran", table(tmp_path, "ann,ge5,odd,0::8,"), base, tmp_path / "out", {})


def test_a_filter_on_an_autoencoder_that_saw_the_victims_is_refused(base: Path, tmp_path: Path) -> None:
    data = {"source": "digits", "utility": ["odd"], "private": ["ge5"], "limit": 1500}
    with pytest.raises(DataError, match="may have seen these victims"):
        fit_run(resolve("filter-linear", data, {**QUICK, "base": str(base)}, seed=1), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_decoded_pictures_can_be_loaded_again(base: Path, tmp_path: Path) -> None:
    data = {"source": "digits", "utility": ["odd"], "private": ["ge5"], "limit": 1500}
    params = {**QUICK, "base": str(base), "output": "data"}
    fit_run(resolve("filter-linear", data, params, seed=0), tmp_path / "run")
    release_run(tmp_path / "run", "digits", tmp_path / "out", labels=True, warrant=UNAUDITED)
    again = load(str(tmp_path / "out" / "release.parquet"), utility=["odd"])
    assert again.x.shape == (5000, 1, 28, 28)


def test_decoded_rows_have_their_original_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [
        f"{rng.integers(18, 80)},{('cook', 'clerk')[rng.integers(2)]},{'fm'[rng.integers(2)]},{rng.integers(2)}"
        for _ in range(500)
    ]
    source = tmp_path / "people.csv"
    source.write_text("age,job,sex,rich\n" + "\n".join(rows) + "\n")
    data = {"source": str(source), "utility": ["rich"], "private": ["sex"]}
    fit_run(resolve("filter-linear", data, {**QUICK, "output": "data"}, seed=0), tmp_path / "run")
    release_run(tmp_path / "run", str(source), tmp_path / "out", warrant=UNAUDITED)
    table = pq.read_table(tmp_path / "out" / "release.parquet")
    assert table.column_names == ["age", "job"]
    assert set(table["job"].to_pylist()) <= {"cook", "clerk"}
    ages = table["age"].to_pylist()
    assert all(isinstance(age, int) and 18 <= age <= 80 for age in ages)
