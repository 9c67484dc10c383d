"""A desk with small files and finished runs, and the command as a function."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from desk import TINY, Call, Outcome, set_up

from sfumato.auditing import effort
from sfumato.cli.main import run


@pytest.fixture(autouse=True)
def _smoke(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(effort._NAMED, "smoke", TINY)


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run a command line through the real entry point."""

    def calling(*args: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["sfumato", *map(str, args)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            run()
        found = capsys.readouterr()
        return Outcome(int(ended.value.code or 0), found.out, found.err)

    return calling


@pytest.fixture(scope="session")
def _desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        set_up(folder)
    return folder


@pytest.fixture
def desk(_desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh copy of the desk as the working directory."""
    folder = tmp_path / "desk"
    shutil.copytree(_desk, folder)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("SFUMATO_DATA", raising=False)
    monkeypatch.setenv("SFUMATO_CACHE", str(tmp_path / "cache"))
    return folder
