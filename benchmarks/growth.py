"""How time and peak memory grow: with records, numbers in a record, parties, users and points of a sweep.

The exponent is the slope in log-log axes over the last decade measured: cost ∝ size^exponent.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.catalogue import commit
from benchmarks.interleaved import Ratio, figure
from benchmarks.measured_process import Measured, measured, prepared
from benchmarks.tasks import TASKS, Task

LINEAR = 1.05
ROUNDS = 3
RECORDS = ("release", "fit", "audit", "synth")
"""What must not grow faster than its records."""
_LEAST = 20 * 2**20
"""Bytes of its own below which the growth of a task's memory is noise."""


def run(small: bool = False, names: Sequence[str] = (), largest: int | None = None) -> dict[str, Any]:
    """Every task at every size in processes of their own, all sizes once in each round; none above ``largest``."""
    tasks = {name: _measured(name, _cut(TASKS[name], largest), small=small) for name in names or TASKS}
    return {
        "claim": f"time of release, fit, audit and synth grows with the records by an exponent of at most {LINEAR}",
        "holds": None if small else linear(tasks),
        "tasks": {name: {**task, "commit": commit()} for name, task in tasks.items()},
    }


def linear(tasks: Mapping[str, Any]) -> bool | None:
    """Whether none of the tasks grows faster than its records; None while one that does not is missing."""
    if any(tasks[name]["exponent"]["quartiles"][0] > LINEAR for name in RECORDS if name in tasks):
        return False
    return True if all(name in tasks for name in RECORDS) else None


def _cut(task: Task, largest: int | None) -> Task:
    kept = tuple(size for size in task.sizes if largest is None or size <= largest)
    return replace(task, sizes=kept or task.sizes[:2])


def _measured(name: str, task: Task, *, small: bool) -> dict[str, Any]:
    sizes = task.few if small else task.sizes
    found: dict[int, list[Measured]] = {size: [] for size in sizes}
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        for size in sizes:
            prepared(name, size, folder)
        for number in range(1 if small else ROUNDS):
            for size in sizes:
                one = measured(name, size, folder)
                found[size].append(one)
                print(f"  {name}, {size:,} {task.along}, round {number + 1}: {one.seconds:.2f} s", file=sys.stderr)
    seconds = {size: [one.seconds for one in each] for size, each in found.items()}
    memory = {size: [one.own_bytes for one in each] for size, each in found.items()}
    return {
        "about": task.about,
        "along": task.along,
        "points": [
            {
                "size": size,
                "seconds": figure(statistics.median(seconds[size])),
                "range": [figure(min(seconds[size])), figure(max(seconds[size]))],
                "peak MB": round(statistics.median(one.peak_bytes for one in found[size]) / 2**20),
                "own MB": figure(statistics.median(memory[size]) / 2**20),
            }
            for size in sizes
        ],
        "exponent": exponent(seconds).to_json(),
        "memory exponent": exponent(memory).to_json() if min(memory[max(sizes)]) > _LEAST else None,
        "why": task.why,
    }


def exponent(costs: Mapping[int, Sequence[float]]) -> Ratio:
    """The slope of log cost over log size by least squares in each round, over sizes from a tenth of the largest."""
    largest = max(costs)
    last = [size for size in sorted(costs) if size >= largest / 10]
    rounds = zip(*(costs[size] for size in last), strict=True)
    return Ratio.of([_slope([math.log(size) for size in last], _logs(round_)) for round_ in rounds])


def _logs(costs: Sequence[float]) -> list[float]:
    return [math.log(max(cost, 1e-9)) for cost in costs]


def _slope(x: Sequence[float], y: Sequence[float]) -> float:
    return statistics.linear_regression(x, y).slope
