"""Points side by side: the same figures as one after the other, controls measured once, errors and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.auditing.controls import Controls
from sfumato.core import compute
from sfumato.core.errors import DataError
from sfumato.testing import TINY
from sfumato.workflow import Point, compare, fit_run, resolve
from sfumato.workflow.processes import Job, side_by_side

DATA = {"source": "digits", "limit": 150}
POINTS = (
    Point("noisy", {"noise": 0.3, "epochs": 1}),  # other noise at each query
    Point("ran", {"lam": 0.1, "epochs": 4}),
    Point("ran", {"lam": 0.01, "epochs": 4}),  # trains on from the one before
)


def figures(folder: Path) -> list[Any]:
    found = json.loads((folder / "scores.json").read_text())
    keep = ("attack", "metric", "target", "value", "ci", "baseline", "control", "leakage")
    return [[score[name] for name in keep] for score in (*found["utility"], *found["attacks"])]


def test_points_side_by_side_have_the_figures_of_points_one_after_the_other(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    heard: list[str] = []
    with compute.using(compute.Compute(threads=1)):
        compare(POINTS, DATA, one, effort=TINY)
    with compute.using(compute.Compute(threads=1, jobs=2)):
        results = compare(POINTS, DATA, two, effort=TINY, say=heard.append)
    assert [result["point"] for result in results] == ["noisy-noise-0.3", "ran-lam-0.1", "ran-lam-0.01"]
    for point in POINTS:
        assert figures(two / "points" / point.id) == figures(one / "points" / point.id)
    assert {line.split()[0] for line in heard} == {"1/3", "2/3", "3/3"}
    controls = [json.loads(file.read_text())["key"] for file in (two / "controls").glob("*.json")]
    assert len(controls) == len(set(controls)) > 3


def note(say: Callable[[str], None], _progress: Any, *, file: Path, text: str) -> None:
    say(text)
    with file.open("a") as lines:
        lines.write(text + "\n")


def refuse(_say: Any, _progress: Any) -> None:
    raise DataError("no such column")


def measure_slowly(_say: Any, _progress: Any, *, folder: Path, log: Path) -> None:
    def measure() -> dict[str, float]:
        time.sleep(0.3)
        with log.open("a") as lines:
            lines.write("measured\n")
        return {"mse": 0.5}

    assert Controls(folder).get("attack", measure) == {"mse": 0.5}


def quiet(_text: str) -> None:
    pass


def test_what_needs_another_result_waits_for_it_and_errors_come_back(tmp_path: Path) -> None:
    file = tmp_path / "order.txt"
    tasks = [
        Job("after", note, {"file": file, "text": "second"}, needs=("before",)),
        Job("before", note, {"file": file, "text": "first"}),
    ]
    side_by_side(tasks, 2, quiet, lambda *_: None)
    assert file.read_text().split() == ["first", "second"]
    with pytest.raises(DataError, match="no such column"):
        side_by_side([Job("a", refuse), Job("b", refuse)], 2, quiet, lambda *_: None)


def test_a_control_is_measured_once_by_whoever_comes_first(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    tasks = [Job(str(n), measure_slowly, {"folder": tmp_path / "c", "log": log}) for n in range(4)]
    side_by_side(tasks, 2, quiet, lambda *_: None)
    assert log.read_text() == "measured\n"


def begun(words: list[str]) -> subprocess.Popen[str]:
    """A command in a process group of its own, which hears Ctrl-C also where a background shell does not."""
    return subprocess.Popen(
        [sys.executable, "-c", "from sfumato.cli.main import main; main()", *words],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )


def assert_ends_in_one_sentence(process: subprocess.Popen[str]) -> None:
    """After Ctrl-C, with no process left."""
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=180)
    assert process.returncode == 130
    assert "interrupted" in errors and "Traceback" not in errors
    with pytest.raises(ProcessLookupError):
        for _ in range(300):  # the group is gone once its last process is reaped
            os.killpg(process.pid, 0)
            time.sleep(0.1)


def test_interrupted_sweep_leaves_one_sentence_and_no_process(tmp_path: Path) -> None:
    words = ["sweep", "ran", "--data", "digits", "--knob", "lam=0.1,0.01", "--limit", "600", "--jobs", "2"]
    process = begun([*words, "--out", str(tmp_path / "s"), "--set", "epochs=500"])
    deadline = time.monotonic() + 240
    while not list(tmp_path.glob("s/points/*/metrics.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert_ends_in_one_sentence(process)


def test_interrupted_audit_leaves_one_sentence_no_process_and_nothing_half_written(tmp_path: Path) -> None:
    run = tmp_path / "run"
    config = resolve("ran", {**DATA, "utility": ["digit"]}, {"epochs": 1}, seed=0)
    fit_run(config, run)
    before = {path.name for path in run.iterdir()}
    process = begun(["audit", str(run), "--jobs", "2"])
    assert process.stderr is not None
    while "inverse" not in (line := process.stderr.readline()):
        assert line, "it ended before it was interrupted"
    assert_ends_in_one_sentence(process)
    assert {path.name for path in run.iterdir()} == before
