"""Records that lie on disk are the same records: same parts, same fit, and no copy of all of them in memory."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from sfumato.core import memory
from sfumato.core.dataset import Splits
from sfumato.core.errors import DataError
from sfumato.data import load_splits
from sfumato.mechanisms import mechanism_class
from sfumato.testing import TINY
from sfumato.workflow import audit_run, fit_run, resolve

ROWS = 900


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Pictures of people whose names are of many lengths, with a label in two halves."""
    rng = np.random.default_rng(0)
    cells = pa.FixedSizeListArray.from_arrays(pa.array(rng.integers(0, 256, ROWS * 64, dtype=np.uint8)), 64)
    people = [f"person-{10 ** (row // 100)}-{row // 3}" for row in range(ROWS)]
    half = rng.integers(0, 2, ROWS)
    table = pa.table({"image": cells, "who": people, "half": half, "other": 1 - half})
    pq.write_table(table, tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


def cut(source: Path, **options: object) -> Splits:
    return load_splits(source, x="image", utility="half", private="other", **options)  # type: ignore[arg-type]


def on_disk(x: object) -> bool:
    while isinstance(x, np.ndarray):
        x = x.base
    return isinstance(x, mmap.mmap)


@pytest.mark.parametrize("subject", ["who", None])
def test_parts_on_disk_are_the_parts_in_memory(
    file: Path, subject: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = cut(file, id=subject)
    assert not on_disk(held.owner.x)
    monkeypatch.setattr(memory, "HELD", 10_000)
    spooled = cut(file, id=subject)
    for name, part in held.parts.items():
        other = spooled.parts[name]
        assert on_disk(other.x) and on_disk(other.ids)
        assert other.digest == part.digest
        assert other.label_digest("half") == part.label_digest("half")
        np.testing.assert_array_equal(other.origin.nonces, part.origin.nonces)


@pytest.mark.parametrize("name", ["dnn", "vae", "ars", "lmifr"])
def test_a_fit_on_disk_has_the_weights_of_a_fit_in_memory(
    file: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = []
    for most in (2**27, 10_000):
        monkeypatch.setattr(memory, "HELD", most)
        fitted.append(mechanism_class(name)(epochs=1).fit(cut(file).owner).state())
    assert all(torch.equal(fitted[0][key], fitted[1][key]) for key in fitted[0])


def test_a_counter_reads_records_where_they_lie(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "HELD", 10_000)
    owner = cut(file).owner
    synth = mechanism_class("synth")(epsilon=8.0, labels="none")
    synth.fit(owner)
    assert synth.records(owner).x.data_ptr() == owner.x.ctypes.data


def test_a_folder_of_parquet_files_is_one_file(file: Path, tmp_path: Path) -> None:
    table, folder = pq.read_table(file), tmp_path / "people"
    folder.mkdir()
    for place, start in enumerate(range(0, ROWS, 250)):
        pq.write_table(table.slice(start, 250), folder / f"part-{place}.parquet")
    (folder / "_SUCCESS").touch()
    one, several = cut(file, id="who"), cut(folder, id="who")
    assert [part.digest for part in several.parts.values()] == [part.digest for part in one.parts.values()]
    pq.write_table(table.drop(["other"]), folder / "part-9.parquet")
    with pytest.raises(DataError, match=r"part-9.parquet: has other columns or types than part-0.parquet"):
        cut(folder)


def test_a_fit_that_copies_records_refuses_more_than_memory_takes(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = cut(file).owner
    monkeypatch.setattr(memory, "limit", lambda: 100_000)
    mechanism_class("dnn")(epochs=1).fit(owner)
    with pytest.raises(DataError, match=r"dnn-resized holds all records in memory .* about 97 do, so use --limit"):
        mechanism_class("dnn-resized")(epochs=1).fit(owner)


def test_an_audit_says_what_it_drew_of_large_parts(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"source": str(file), "x": ["image"], "utility": ["half"], "private": ["other"]}
    fit_run(resolve("dnn", data, {"epochs": 1}, seed=0), tmp_path / "run")
    monkeypatch.setattr(memory, "drawn", lambda record: 150)
    heard: list[str] = []
    scores = audit_run(tmp_path / "run", effort=TINY, say=heard.append)
    assert [some for some, _ in scores["drawn"].values()] == [150, 150, 150]
    assert any("150 of" in line and "records of the victim are drawn" in line for line in heard)
    assert max(score["n"] for score in scores["utility"]) == 150


def test_no_room_for_records_is_one_sentence(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "HELD", 10_000)
    monkeypatch.setattr("tempfile.TemporaryFile", lambda: Path("/dev/full").open("r+b"))  # noqa: SIM115
    with pytest.raises(DataError, match=r"cannot keep the records in .* \(No space left on device\): set TMPDIR"):
        cut(file)
