"""Records that a file holds several times, from the file through the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from desk import Call, write_csv

from sfumato.core.dataset import Dataset
from sfumato.core.traits import Traits
from sfumato.mechanisms.device_secret import SECRET_VARIABLE
from sfumato.workflow import releasing
from sfumato.workflow.repeated_records import RepeatedRecords

PLACES = ("rome", "oslo", "bern", "kyiv")
HEADER = ("person", "place", "work", "rich")
FIT = ("fit", "ars", "--data", "few.csv", "--utility", "rich", "--set", "epochs=1", "--set", "latent=8")


def few(rows: int = 240) -> list[list[str]]:
    """Four places and two kinds of work: eight records, over and over."""
    rng = np.random.default_rng(0)
    places, works = rng.choice(4, rows, p=(0.55, 0.25, 0.15, 0.05)), rng.integers(2, size=rows)
    rich = (rng.random(rows) < 0.3 + 0.4 * works).astype(int)
    return [[f"p{row}", PLACES[places[row]], "ab"[works[row]], "ny"[rich[row]]] for row in range(rows)]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "device.key").write_bytes(bytes(range(32)))
    monkeypatch.setenv(SECRET_VARIABLE, str(tmp_path / "device.key"))
    write_csv(tmp_path / "few.csv", few(), HEADER)
    return tmp_path


def payloads(folder: str) -> np.ndarray:
    import pyarrow.parquet as pq

    column = pq.read_table(Path(folder) / "release.parquet")["payload"].combine_chunks()
    return np.asarray(column.flatten()).reshape(len(column), -1)


def test_eight_kinds_of_record_leave_as_many_payloads_as_there_are_rows(
    table: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call(*FIT, "--x", "place", "--x", "work", "--out", "run").code == 0
    monkeypatch.setattr(releasing, "BATCH_ROWS", 50)
    assert call("release", "run", "--unaudited", "--data", "few.csv", "--out", "one").code == 0
    assert len(np.unique(payloads("one"), axis=0)) == 240
    monkeypatch.setattr(releasing, "BATCH_ROWS", 4096)
    assert call("release", "run", "--unaudited", "--data", "few.csv", "--out", "two").code == 0
    assert np.allclose(payloads("one"), payloads("two"), atol=1e-5)  # chunks change nothing, nor does a second time


def test_by_columns_a_party_with_few_values_leaves_no_codebook(table: Path, call: Call) -> None:
    by = ("--set", "split=columns", "--set", "parties=2")
    assert call(*FIT, "--x", "place", "--x", "work", *by, "--out", "run").code == 0
    assert call("release", "run", "--unaudited", "--data", "few.csv", "--out", "one").code == 0
    first, second = payloads("one")[:, :8], payloads("one")[:, 8:]
    assert len(np.unique(first, axis=0)) == len(np.unique(second, axis=0)) == 240


def test_a_person_keeps_the_noise_when_others_join_or_leave(table: Path, call: Call) -> None:
    assert call(*FIT, "--x", "place", "--x", "work", "--id", "person", "--out", "run").code == 0
    assert call("release", "run", "--unaudited", "--data", "few.csv", "--out", "one").code == 0
    write_csv(table / "later.csv", few()[:0:-2], HEADER)
    assert call("release", "run", "--unaudited", "--data", "later.csv", "--out", "two").code == 0
    assert np.allclose(payloads("two"), payloads("one")[:0:-2], atol=1e-5)


def test_commands_say_how_many_records_share_their_content(table: Path, call: Call) -> None:
    fit = call(*FIT, "--x", "place", "--x", "work", "--out", "run")
    assert "records share their content with another" in " ".join(fit.err.split())
    said = call("release", "run", "--unaudited", "--data", "few.csv", "--out", "one").err
    assert "240 of 240 records share their content with another" in " ".join(said.split())
    assert "share" not in call("release", "run", "--unaudited", "--data", "few.csv", "--out", "two", "--quiet").err


def test_the_warning_about_copies_fits_what_leaves() -> None:
    repeated = RepeatedRecords()
    repeated.add(Dataset.from_arrays(np.zeros((4, 3), dtype=np.float32)))
    assert "noise" in str(repeated.sentence(Traits()))
    assert "messages" in str(repeated.sentence(Traits(rows_per_message=4)))
    assert repeated.sentence(Traits(synthetic=True)) is None


def scores(found: dict[str, Any], attack: str, metric: str) -> dict[str, Any]:
    return next(s for s in found["attacks"] if s["attack"] == attack and s["metric"] == metric)


def test_audit_counts_payloads_and_finds_nothing_to_count(table: Path, call: Call) -> None:
    assert call(*FIT, "--x", "place", "--x", "work", "--id", "person", "--out", "run").code == 0
    found = call("audit", "run", "--effort", "smoke", "--json").json()
    counted = scores(found, "counting", "whole-record")
    assert counted["value"] == counted["baseline"] and counted["control"] > counted["baseline"]


def test_audit_by_columns_reads_masks_and_runs_the_papers_attacker(table: Path, call: Call) -> None:
    by = ("--set", "split=columns", "--set", "parties=2", "--set", "variant=published")
    assert call(*FIT, "--x", "place", "--x", "work", "--id", "person", *by, "--out", "run").code == 0
    found = call("audit", "run", "--effort", "smoke", "--json").json()
    assert {"sdec-own-mask", "sdec-read-mask", "sdec-known-mask", "mask-by-spread"} <= {
        s["attack"] for s in found["attacks"]
    }
    assert not any("mask" in skipped["reason"] for skipped in found["skipped"])
