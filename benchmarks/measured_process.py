"""Time and peak memory of one task of one size, in a process of its own.

The peak is the process' own high-water mark (VmHWM): what ``getrusage`` says also counts the process that started it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Measured:
    """Seconds of the work alone; ``idle_bytes`` were resident at most before it began."""

    seconds: float
    peak_bytes: int
    idle_bytes: int

    @property
    def own_bytes(self) -> int:
        """What the work needed beyond the program itself."""
        return max(0, self.peak_bytes - self.idle_bytes)


def prepared(task: str, size: int, folder: Path) -> None:
    """Make what the task reads; not measured."""
    _run("prepare", task, size, folder)


def measured(task: str, size: int, folder: Path) -> Measured:
    """Do it once; raises ``CalledProcessError`` if it fails."""
    return Measured(**json.loads(_run("measure", task, size, folder)))


def _run(step: str, task: str, size: int, folder: Path) -> str:
    command = [sys.executable, "-m", "benchmarks.measured_process", step, task, str(size), str(folder)]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def _high_water() -> int:
    """Most bytes that have been resident in this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def _main(step: str, name: str, size: int, folder: Path) -> None:
    task = import_module("benchmarks.tasks").TASKS[name]
    if step == "prepare":
        task.prepare(folder, size)
        return
    work = task.work(folder, size)
    idle = _high_water()
    started = time.perf_counter()
    work()
    seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "peak_bytes": _high_water(), "idle_bytes": idle}))


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
