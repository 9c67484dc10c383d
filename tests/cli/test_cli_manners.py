"""How the command behaves towards whoever types it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from desk import Call

from sfumato.cli.main import app
from sfumato.cli.output import time_left
from sfumato.core.run_folder import atomic, sweep, whole_name


@pytest.mark.parametrize(("typed", "meant"), [(("fti",), "fit"), (("data", "shwo", "x"), "show")])
def test_a_mistyped_command_is_corrected_once(call: Call, typed: tuple[str, ...], meant: str) -> None:
    said = call(*typed)
    assert said.code == 2 and said.err.count(f"Did you mean '{meant}'?") == 1


def complete(words: str) -> list[str]:
    """What bash would offer after Tab."""
    environ = {**os.environ, "_SFUMATO_COMPLETE": "complete_bash", "COMP_WORDS": words}
    environ["COMP_CWORD"] = str(len(words.split(" ")) - 1)
    command = [sys.executable, "-m", "sfumato"]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False).stdout.split()


@pytest.mark.parametrize(
    ("begun", "offered"),
    [("sfumato swe", "sweep"), ("sfumato fit pha", "phase"), ("sfumato fit ran --data digi", "digits")],
)
def test_a_shell_completes_commands_mechanisms_and_data(begun: str, offered: str) -> None:
    assert offered in complete(begun)


def test_an_interrupted_fit_goes_on_by_its_folder_alone(call: Call, tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    rows = "".join(f"{i % 50},{(i * 7) % 31},{'yes' if i % 50 > 25 else 'no'}\n" for i in range(200))
    table.write_text("age,hours,ill\n" + rows)
    out = tmp_path / "run"
    asked = ("fit", "dnn", "--data", table, "--utility", "ill", "--set", "epochs=2", "--out", out)
    assert call(*asked).code == 0
    (out / "status.json").write_text('{"state": "running", "format": 3}')  # as if it had been stopped
    again = call("fit", "--resume", "--out", out)
    assert again.code == 0, again.err
    assert "fitted on" in again.out


def test_help_shows_no_stray_backslash_and_fits_a_hundred_columns(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for command in [(), *((one.name or one.callback.__name__,) for one in app.registered_commands if one.callback)]:
        said = call(*command, "--help").out
        assert "\\" not in said and max(map(len, said.splitlines())) <= 100


def test_what_a_killed_process_left_is_swept(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    with atomic(tmp_path / "outbox") as mine:
        mine.mkdir()
        left = mine.with_name(mine.name.replace(str(os.getpid()), str(dead.pid)))
        left.mkdir()
        (left / "release.parquet").write_bytes(b"half")
        sweep(tmp_path / "outbox")
        assert mine.exists() and not left.exists()


def test_messages_name_the_file_that_was_asked_for() -> None:
    assert whole_name("/runs/.r.html.part20062host") == "/runs/r.html"
    assert whole_name("plain.partial") == "plain.partial"


def test_the_time_left_is_told_in_seconds_then_minutes() -> None:
    assert [time_left(seconds) for seconds in (1, 42, 200)] == ["", " · 42 s left", " · 3 min left"]
