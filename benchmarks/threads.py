"""No fit is slower with the default number of threads than with one, neither alone nor beside a busy neighbour.

Every fit is a command in a process of its own, without any limit in its environment, as after an install.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.interleaved import Ratio

RECORDS, ROUNDS, TARGET = 2_000, 3, 1.05
FITS = {
    "filter": ["--set", "steps=150"],
    "ran": ["--set", "epochs=2"],
    "phase": ["--set", "epochs=2"],
    "ars": ["--set", "epochs=3"],
}
_BESIDE = ("filter", "ran")
_LIMITS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def run(small: bool = False) -> dict[str, Any]:
    """Default over ``--threads 1``, interleaved: wall and processor time."""
    fits = {"ran": ["--set", "epochs=1"], "filter": ["--set", "steps=50"]} if small else FITS
    rounds = 2 if small else ROUNDS
    ratios = {}
    for name, more in fits.items():
        ratios |= _ratios(name, more, rounds, "alone")
    with _neighbour():
        for name in _BESIDE:
            ratios |= _ratios(name, fits[name], rounds, "beside a busy process")
    return {
        "claim": f"a short fit of {RECORDS:,} digits takes at most {TARGET} × as long with default threads as with one",
        "holds": all(one["median"] <= TARGET for one in ratios.values() if "at most" in one),
        "ratios": ratios,
    }


def _ratios(mechanism: str, more: list[str], rounds: int, where: str) -> dict[str, dict[str, Any]]:
    pairs = [(_fit(mechanism, more), _fit(mechanism, [*more, "--threads", "1"])) for _ in range(rounds)]
    wall, processor = (Ratio.of([default[clock] / one[clock] for default, one in pairs]).to_json() for clock in (0, 1))
    name = f"fit {mechanism}, default over one thread, {where}"
    return {name: {**wall, "at most": TARGET}, f"{name}, processor time": processor}


def _fit(mechanism: str, more: list[str]) -> tuple[float, float]:
    """Wall and processor seconds of one command."""
    words = ["fit", mechanism, "--data", "digits", "--utility", "odd", "--private", "ge5", "--limit", str(RECORDS)]
    words += ["--quiet", *more]
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
