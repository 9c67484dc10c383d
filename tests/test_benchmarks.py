"""The benchmarks can be started: what they import is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("words", [("benchmarks", "no-such"), ("benchmarks.peers", "--help")])
def test_benchmarks_start(words: tuple[str, str]) -> None:
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert "Traceback" not in said and ("usage" in said or "unknown benchmark" in said), said[-1000:]
