"""A run folder is its owner's alone, and tells nobody who gets a copy of it whether a guess about a record is right."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from desk import PEOPLE, QUICK, Call, people, write_csv

from sfumato.data import load_splits
from sfumato.mechanisms import load_mechanism


def readable_by_others(folder: Path) -> list[str]:
    return [str(file) for file in (folder, *folder.rglob("*")) if file.stat().st_mode & 0o077]


def test_everything_that_a_run_writes_is_private(desk: Path, call: Call) -> None:
    before = os.umask(0o022)
    try:
        assert call("fit", "dnn", *PEOPLE, *QUICK, "--out", "mine", "-q").code == 0
        assert call("audit", "mine", "--effort", "smoke", "-q").code == 0
        assert call("report", "mine").code == 0
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)
    assert {"features.json", "gallery.safetensors", "report.html"} <= {file.name for file in Path("mine").iterdir()}
    assert readable_by_others(Path("mine")) == []


def test_open_files_of_an_older_run_are_shut(desk: Path, call: Call) -> None:
    for file in (Path("audited"), *Path("audited").rglob("*")):
        file.chmod(0o755 if file.is_dir() else 0o644)
    assert call("release", "audited", "--unaudited", "-d", "people.csv", "--out", "r").code == 0
    assert readable_by_others(Path("audited")) == []


def test_copy_of_a_run_confirms_no_guess_about_a_record(
    desk: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("fit", "dnn", *PEOPLE, *QUICK, "--out", "mine", "-q").code == 0
    kept = Path("mine/splits.json").read_text()
    splits = load_splits("people.csv", utility="income", private="sex")
    assert not any(part.digest in kept for part in splits.parts.values())
    monkeypatch.setenv("SFUMATO_STATE", str(desk / "attacker"))
    assert call("fit", "dnn", *PEOPLE, *QUICK, "--out", "theirs", "-q").code == 0
    mine, theirs = json.loads(kept), json.loads(Path("theirs/splits.json").read_text())
    assert {part["seal"] for part in mine.values() if isinstance(part, dict)}.isdisjoint(
        part["seal"] for part in theirs.values() if isinstance(part, dict)
    )
    refused = call("audit", "mine", "--effort", "smoke")
    assert refused.code == 3 and "sealed with another owner's key" in refused.err


def test_owner_notices_that_one_record_has_changed(desk: Path, call: Call) -> None:
    rows = people()
    rows[40][0] = "77"
    write_csv(desk / "people.csv", rows)
    ended = call("audit", "run", "--effort", "smoke")
    assert ended.code == 3 and "the data have changed" in ended.err


def test_key_lies_outside_of_the_run_and_is_private(desk: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_STATE", str(desk / "state"))
    assert call("fit", "dnn", *PEOPLE, *QUICK, "--out", "mine", "-q").code == 0
    key = (desk / "state" / "owner.key").read_bytes()
    assert len(key) == 32 and readable_by_others(desk / "state") == []
    written = [file.read_bytes() for file in Path("mine").rglob("*") if file.is_file()]
    assert not any(key in content or key.hex().encode() in content for content in written)
    monkeypatch.setenv("SFUMATO_STATE", str(desk / "people.csv"))
    assert "set SFUMATO_STATE to a folder of yours" in call("audit", "mine", "--effort", "smoke").err
    monkeypatch.setenv("SFUMATO_STATE", str(desk / "state"))
    (desk / "state" / "owner.key").write_bytes(b"short")
    assert "an owner's key has 32" in call("audit", "mine", "--effort", "smoke").err


def test_what_goes_to_a_device_is_enough_and_holds_nothing_of_the_records(desk: Path, call: Call) -> None:
    """The files that docs/filter.md names."""
    assert call("fit", "vae", *PEOPLE, *QUICK, "--out", "vae", "-q").code == 0
    assert call("fit", "gaussian", "--utility", "income", "--base", "vae", "--out", "gaussian", "-q").code == 0
    for run in ("vae", "gaussian"):
        (desk / "device" / run / "checkpoint").mkdir(parents=True)
        for name in ("mechanism.json", "schema.json", "base.json", "checkpoint/encoder.safetensors"):
            if (desk / run / name).exists():
                shutil.copy(desk / run / name, desk / "device" / run / name)
    shutil.rmtree("vae")
    shutil.rmtree("gaussian")
    few = load_splits("people.csv", utility="income", private="sex").victim
    assert len(load_mechanism(desk / "device" / "gaussian").transform(few.x)) == len(few)


def test_run_keeps_no_count_where_the_promise_covers_it(desk: Path, call: Call) -> None:
    made = ("--data", "digits", "--limit", "600", "--utility", "odd", "--set", "epsilon=10", "--out", "drawn")
    ended = call("fit", "synth", *made, "-q")
    assert ended.code == 0 and "how many is not kept" in ended.out
    parts = json.loads(Path("drawn/splits.json").read_text())
    assert all(set(parts[name]) == {"seal", "labels"} for name in ("owner", "attacker", "victim"))
