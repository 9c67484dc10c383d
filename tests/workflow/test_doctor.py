"""What ``sfumato doctor`` says is so, and a broken installation does not pass."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfumato import mechanisms
from sfumato.cli.main import app
from sfumato.workflow.doctor import examine, self_test


def test_every_requirement_of_the_core_is_listed_with_its_version() -> None:
    found = {check.name: check for check in examine()}
    assert {"sfumato", "Python", "torch", "numpy", "pyarrow", "cores", "memory", "device"} <= set(found)
    assert all(check.ok for check in found.values()), [check for check in found.values() if not check.ok]


def test_a_wrong_data_folder_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_DATA", "/no/such/folder")
    wrong = [check for check in examine() if not check.ok]
    assert [check.name for check in wrong] == ["SFUMATO_DATA"]
    assert "no such folder" in wrong[0].advice


def test_the_self_test_stops_where_the_installation_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("an illegal instruction")

    monkeypatch.setattr(mechanisms.mechanism_class("ran"), "_fit", broken)
    (only,) = self_test("ran")
    assert not only.ok
    assert only.found == "RuntimeError: an illegal instruction"


def test_a_sound_installation_passes_its_self_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path))
    steps = self_test("ran")
    assert [check.name.removeprefix("self-test: ") for check in steps] == ["fit", "store and load", "release", "audit"]
    assert all(check.ok for check in steps), steps


def test_doctor_speaks_json_and_tells_by_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    result = CliRunner().invoke(app, ["doctor", "--quick", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["healthy"] is True
    monkeypatch.setenv("SFUMATO_DATA", "/no/such/folder")
    assert CliRunner().invoke(app, ["doctor", "--quick"]).exit_code == 1
