"""The command as a process of its own: killed, interrupted, piped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from desk import PEOPLE, Call

COMMAND = (sys.executable, "-m", "sfumato")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
WEIGHTS = Path("checkpoint/encoder.safetensors")


def stop_after_first_epoch(args: tuple[str, ...], run: Path, sign: signal.Signals) -> tuple[int, str, str]:
    """Start a fit and send it a signal as soon as its first progress is on disk."""
    process = subprocess.Popen(
        [*COMMAND, *args],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 — else ignored in a background shell
    )
    until = time.monotonic() + 60
    while not (run / "checkpoint/progress.safetensors").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.005)
    process.send_signal(sign)
    out, err = process.communicate(timeout=30)
    assert not (run / WEIGHTS).exists(), "the fit was over before the signal came"
    return process.returncode, out, err


IMAGES = ("fit", "ran", "--data", "digits", "--limit", "200", "-s", "epochs=4", "-s", "k=1", "--out", "new")
TABLE = ("fit", "noisy", *PEOPLE, "-s", "epochs=200", "--out", "new")


def test_a_fit_that_was_killed_goes_on_to_the_very_same_mechanism(desk: Path, call: Call) -> None:
    code, out, _ = stop_after_first_epoch(IMAGES, desk / "new", signal.SIGKILL)
    assert (code, out) == (-signal.SIGKILL, "")
    refused = call(*IMAGES)
    assert refused.code == 3
    assert "--resume" in refused.err
    assert call(*IMAGES, "--resume").code == 0
    assert call(*IMAGES[:-1], "whole").code == 0
    assert (desk / "new" / WEIGHTS).read_bytes() == (desk / "whole" / WEIGHTS).read_bytes()
    assert (desk / "new/metrics.jsonl").read_text() == (desk / "whole/metrics.jsonl").read_text()
    assert not (desk / "new/checkpoint/progress.safetensors").exists()


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_is_one_sentence_and_resume_goes_on(sign: signal.Signals, desk: Path, call: Call) -> None:
    args = (*TABLE, "--quiet")
    code, out, err = stop_after_first_epoch(args, desk / "new", sign)
    assert (code, out) == (130, "")
    assert err.startswith("sfumato: interrupted")
    assert err.count("\n") == 1
    assert "--resume" in err
    assert call(*args, "--resume").code == 0


def test_the_command_runs_end_to_end_without_colours_or_tracebacks(desk: Path) -> None:
    def sfumato(*args: str) -> subprocess.CompletedProcess[str]:
        environment = {**ENVIRONMENT, "NO_COLOR": "1", "FORCE_COLOR": ""}
        return subprocess.run([*COMMAND, *args], env=environment, capture_output=True, text=True, check=False)

    audited = sfumato("audit", "run", "--effort", "smoke", "--quiet")
    assert (audited.returncode, audited.stderr) == (0, "")
    assert "\x1b" not in audited.stdout
    assert "reid-query" in audited.stdout
    wrong = sfumato("fitt")
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1)


def test_a_reader_that_leaves_early_causes_no_traceback() -> None:
    process = subprocess.Popen(
        [*COMMAND, "data", "list", "--json"], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait(timeout=30)
