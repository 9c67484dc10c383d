"""No fit is slower with the default number of threads than with one, neither alone nor beside a busy neighbour.

Every fit is a command in a process of its own, without any limit in its environment, as after an install.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RECORDS, ROUNDS, TARGET = 2_000, 3, 1.05
FITS = {
    "filter": ["--set", "epochs=6"],
    "ran": ["--set", "epochs=3"],
    "phase": ["--set", "epochs=3"],
    "ars": ["--set", "epochs=6"],
    "synth": ["--set", "steps=4", "--set", "epsilon=8"],
}
_LIMITS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def run() -> dict[str, Any]:
    """Default over ``--threads 1``, interleaved: wall and processor time, medians of the rounds."""
    quiet = {name: _ratios(name, more) for name, more in FITS.items()}
    with _neighbour():
        busy = {name: _ratios(name, more) for name, more in FITS.items()}
    return {
        "claim": f"a fit of {RECORDS:,} digits takes at most {TARGET} × as long with default threads as with one",
        "alone": quiet,
        "beside a busy process": busy,
        "target": TARGET,
        "holds": all(ratio["wall"] <= TARGET for found in (quiet, busy) for ratio in found.values()),
    }


def _ratios(mechanism: str, more: list[str]) -> dict[str, float]:
    rounds = [(_fit(mechanism, more), _fit(mechanism, [*more, "--threads", "1"])) for _ in range(ROUNDS)]
    wall = statistics.median(default[0] / one[0] for default, one in rounds)
    processor = statistics.median(default[1] / one[1] for default, one in rounds)
    return {"wall": round(wall, 3), "processor": round(processor, 3)}


def _fit(mechanism: str, more: list[str]) -> tuple[float, float]:
    """Wall and processor seconds of one command."""
    words = ["fit", mechanism, "--data", "digits", "--limit", str(RECORDS), "--private", "ge5", "--quiet", *more]
    environment = {name: value for name, value in os.environ.items() if name not in _LIMITS}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", "from sfumato.cli.main import main; main()", *words]
        started = time.perf_counter()
        process = subprocess.Popen(
            [*command, "--out", str(Path(folder) / "run")], env=environment, stdout=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
    if status != 0:
        raise RuntimeError(f"sfumato {' '.join(words)} ended with {os.waitstatus_to_exitcode(status)}")
    return wall, used.ru_utime + used.ru_stime


@contextmanager
def _neighbour() -> Iterator[None]:
    """A process that keeps a core busy."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()
