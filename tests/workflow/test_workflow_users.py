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
from sfumato.data import load
from sfumato.mechanisms import load_mechanism
from sfumato.workflow import audit_run, fit_run, fit_users, release_run, resolve

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
    for name in ("ann", "bob", "eve"):
        folder = tmp_path / "out" / name
        assert RunFolder.open(folder).done
        assert not (folder / "base").exists()
        assert (folder / "checkpoint" / "filter.safetensors").stat().st_size < 64 * 1024
    bob = load_mechanism(tmp_path / "out" / "bob")
    assert (list(bob.schema_.private), list(bob.schema_.utility)) == (["odd"], ["ge5", "circle"])
    scores = audit_run(tmp_path / "out" / "ann", effort=TINY)
    assert {score["target"] for score in scores["attacks"]} == {"ge5"}
    release_run(tmp_path / "out" / "ann", "digits", tmp_path / "released")
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
    ],
)
def test_a_line_that_cannot_be_is_named_and_nothing_is_left(
    base: Path, tmp_path: Path, lines: list[str], said: str
) -> None:
    with pytest.raises((DataError, UsageError), match=said.replace("(", r"\(")):
        fit_users("filter-linear", table(tmp_path, *lines), base, tmp_path / "out", QUICK)
    assert not (tmp_path / "out").exists()


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
    release_run(tmp_path / "run", "digits", tmp_path / "out", labels=True)
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
    release_run(tmp_path / "run", str(source), tmp_path / "out")
    table = pq.read_table(tmp_path / "out" / "release.parquet")
    assert table.column_names == ["age", "job"]
    assert set(table["job"].to_pylist()) <= {"cook", "clerk"}
    ages = table["age"].to_pylist()
    assert all(isinstance(age, int) and 18 <= age <= 80 for age in ages)
