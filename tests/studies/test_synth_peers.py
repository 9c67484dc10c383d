"""Peers run in their own environment, and what becomes of them is a figure or a reason, never an error."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.core.dataset import Dataset
from sfumato.core.errors import UsageError
from sfumato.core.schema import Column, Schema
from sfumato.studies import peers, synth_peers
from sfumato.studies.peers import PEERS, run_peer
from sfumato.studies.peers.peer_tables import as_codes, as_values, from_codes, from_values
from sfumato.studies.synth_peers import PeerEffort, compared

FAKE = """
import time

class Model:
    def __init__(self, name, epsilon, delta):
        assert 0 < delta < 1
        self.name = name
    def fit(self, table, categorical_columns, continuous_columns, preprocessor_eps):
        assert preprocessor_eps == 0.0 and not continuous_columns
        if self.name == "aim":
            raise ValueError("too many\\ncells")
        if self.name == "patectgan":
            time.sleep(60)
        self.table = table
    def sample(self, rows):
        return self.table.sample(rows, replace=True, random_state=0)

class Synthesizer:
    @staticmethod
    def create(name, epsilon, delta):
        return Model(name, epsilon, delta)
"""
COLUMNS = (
    Column("age", "numeric", low=0, high=99, integer=True, strict=True),
    Column("size", "numeric", low=0.0, high=2.0, strict=True),
    Column("job", "categorical", categories=("clerk", "cook"), nullable=True, strict=True),
)
SCHEMA = Schema(
    "table", (5,), utility={"income": ("low", "high")}, x_columns=("age", "size", "job"), columns=COLUMNS, declared=True
)


def people(rows: int = 600, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    age, job = rng.integers(0, 100, rows), rng.integers(0, 3, rows)
    x = np.concatenate([age[:, None] / 99, rng.random((rows, 1)), np.eye(3)[job]], axis=1).astype(np.float32)
    return Dataset(x, SCHEMA, {"income": (age + 30 * (job == 1) > 60).astype(np.int64)}, name="people")


@pytest.fixture
def envs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment whose SmartNoise draws the records again."""
    package = tmp_path / "envs" / "smartnoise"
    (package / "bin").mkdir(parents=True)
    (package / "fake").mkdir()
    (package / "fake" / "snsynth.py").write_text(FAKE)
    python = package / "bin" / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={package / "fake"} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("SFUMATO_PEERS", str(tmp_path / "envs"))
    return tmp_path / "envs"


def table(path: Path) -> Path:
    pq.write_table(pa.table({"a": [0, 1, 2, 1], "b": [1, 0, 1, 0]}), path)
    return path


def test_a_peer_writes_as_many_rows_as_asked_for(tmp_path: Path, envs: Path) -> None:
    done = run_peer("mst", 1.0, table(tmp_path / "t.parquet"), tmp_path / "o.parquet", 60, texts=["a", "b"], rows=7)
    assert done.failed is None and done.seconds > 0.0 and done.path == tmp_path / "o.parquet"
    assert pq.read_table(done.path).num_rows == 7 and pq.read_table(done.path).column_names == ["a", "b"]


@pytest.mark.parametrize(
    ("peer", "limit", "reason"), [("aim", 60, "cells"), ("patectgan", 3, "not done after 3 s"), ("ctgan", 60, "ctgan")]
)
def test_a_peer_that_fails_or_takes_too_long_is_reported(
    peer: str, limit: float, reason: str, tmp_path: Path, envs: Path
) -> None:
    if peer == "ctgan":
        (envs / "ctgan").symlink_to(envs / "smartnoise")
    done = run_peer(peer, 1.0, table(tmp_path / "t.parquet"), tmp_path / "o.parquet", limit, texts=["a", "b"])
    assert done.path is None and done.failed is not None and reason in done.failed
    assert not (tmp_path / "o.parquet").exists()


def test_an_environment_that_cannot_be_made_is_reported(
    tmp_path: Path, envs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(peers.venv, "create", broken)
    done = run_peer("ctgan", 1.0, table(tmp_path / "t.parquet"), tmp_path / "o.parquet", 9, texts=["a", "b"])
    assert done.failed == "its environment could not be made: no space left on device" and done.epsilon is None


def test_a_mistyped_peer_suggests_the_right_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'mst'"):
        run_peer("mts", 1.0, tmp_path / "t", tmp_path / "o", 1, texts=[])


def test_records_come_back_from_both_forms_of_the_table() -> None:
    data = people()
    x, y = from_values(as_values(data, "income"), SCHEMA, "income")
    assert np.allclose(x, data.x, atol=1e-6) and np.array_equal(y, data.utility["income"])
    codes = as_codes(data, "income")
    x, y = from_codes(codes, SCHEMA, "income", 0)
    assert np.array_equal(y, data.utility["income"]) and np.array_equal(x[:, 2:], data.x[:, 2:])
    assert np.abs(x[:, :2] - data.x[:, :2]).max() <= 1 / 30, "a number stays within its bin"
    again = as_codes(Dataset(x, SCHEMA, {"income": y}, name="again"), "income")
    assert again.column("age").equals(codes.column("age")) and again.column("job").equals(codes.column("job"))


def test_the_study_compares_those_that_finish_and_names_those_that_do_not(tmp_path: Path, envs: Path) -> None:
    effort, said = PeerEffort((2.0,), ("mst", "aim"), 60.0, 2), []
    train, test = people(), people(seed=1)
    found = compared(train, test, effort, seed=0, out=tmp_path / "study", say=said.append)
    rows = {row.name: row for row in found}
    assert len(rows) == len(found)
    ours = rows["synth, tree, ε = 2: boosted-trees, accuracy"]
    theirs = rows["SmartNoise MST, ε = 2: boosted-trees, accuracy"]
    assert ours.ours > 0.7 and ours.ci[0] <= ours.ours <= ours.ci[1] and theirs.ours > 0.9, "it draws the records again"
    assert (ours.seeds, theirs.seeds) == (2, 1)
    share = float(np.bincount(test.utility["income"]).max() / len(test))
    assert (ours.n, ours.majority, theirs.majority) == (len(test), pytest.approx(share), pytest.approx(share))
    assert ours.ci[1] - ours.ci[0] > theirs.ci[1] - theirs.ci[0], "two runs differ, and their interval holds that too"
    assert "SmartNoise AIM, ε = 2: cells" in rows
    assert rows["the real records: logistic, auroc"].ours > 0.9
    assert all(row.asked is None for row in found) and not synth_peers.STUDY.claims, "the paper says nothing of tables"
    assert json.loads((tmp_path / "study" / "aim-2.json").read_text())["failed"] == "cells"
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "study").iterdir()}
    again = compared(train, test, effort, seed=0, out=tmp_path / "study", say=said.append)
    assert again == found and before == {path: path.stat().st_mtime_ns for path in (tmp_path / "study").iterdir()}
    assert len(said) == 12 and "cells" in said[5]


def test_a_peer_that_fails_is_not_tried_with_a_larger_budget(tmp_path: Path, envs: Path) -> None:
    effort = PeerEffort((1.0, 2.0), ("aim",), 60.0, 1)
    compared(people(), people(seed=1), effort, seed=0, out=tmp_path / "study", say=lambda _: None)
    assert (tmp_path / "study" / "aim-1.json").exists() and not (tmp_path / "study" / "aim-2.json").exists()


def test_every_scale_names_peers_that_exist() -> None:
    for effort in synth_peers.EFFORTS.values():
        assert set(effort.peers) <= set(PEERS) and 1.0 in effort.epsilons
