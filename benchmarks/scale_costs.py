"""What a very large deployment costs: unit costs of the growth benchmark, multiplied.

``python -m benchmarks.scale_costs`` prints the table of docs/scale-costs.md. Time is core-seconds at the largest size
measured; nothing is assumed about better machines, and nothing is gained from more of them but their number.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- table -->", "<!-- /table -->"

DEVICES, PARTIES, RECORDS = 1_000_000, 1_000, 1_000_000_000
_PAYLOAD, _SHARED = 128 * 4, 64 * 4
"""Bytes of one released record (`ran`, 28×28) and of one representation in a pool."""
_FILTER_BYTES = 692
_EACH = 1_000
"""Records that every party shares, as in the benchmark."""


@dataclass(frozen=True)
class Cost:
    """``work`` in core-seconds over all, ``memory`` of one process in bytes, ``output`` in bytes stored or sent."""

    what: str
    work: float
    memory: float
    output: float
    exponent: float
    spread: bool
    """Whether it can be cut into parts that know nothing of each other."""


def costs(growth: Mapping[str, Any]) -> list[Cost]:
    """Every part of the deployment, from the measured points of ``growth``."""
    pool = f"one party's part of a pool of 10³ parties, {_EACH:,} records each"
    parts: tuple[tuple[str, str, int, int, bool], ...] = (
        ("release", "release 10⁹ records (`ran`)", RECORDS, _PAYLOAD, True),
        ("users", "train filters for 10⁶ devices", DEVICES, _FILTER_BYTES, True),
        ("pool", pool, PARTIES, _EACH * _SHARED, False),
        ("fit", "fit `ran` to 10⁹ records, one epoch", RECORDS, 0, False),
        ("audit", "audit with all of 10⁹ records at effort smoke", RECORDS, 0, False),
        ("synth", "learn a table of 10⁹ rows (`synth`)", RECORDS, 0, False),
    )
    tasks = growth["tasks"]
    return [
        _scaled(tasks[name], what, size, output, flat=flat) for name, what, size, output, flat in parts if name in tasks
    ]


def _scaled(task: Mapping[str, Any], what: str, size: int, output: int, *, flat: bool = False) -> Cost:
    """The largest measured point, carried on linearly, or by its exponent where that is above 1.

    ``flat``: the work is cut into parts of the measured size, so that memory stays that of one part.
    """
    last = task["points"][-1]
    exponent = task["exponent"]["median"]
    times = (size / last["size"]) ** (1.0 if flat else max(1.0, exponent))
    idle = 1e6 * max(0.0, last["peak MB"] - last["own MB"])
    own = 1e6 * last["own MB"]
    memory = idle + own * (1 if flat else size / last["size"] if task["memory exponent"] else 1)
    return Cost(what, last["seconds"] * times, memory, float(output) * size, exponent, flat)


def table(growth: Mapping[str, Any]) -> list[str]:
    """The table in Markdown, the part that breaks first last."""
    found = costs(growth)
    lines = [
        "| what | core-time | on 100 cores | memory of one process | stored or sent | exponent | |",
        "|---|---|---|---|---|---|---|",
    ]
    for cost in found:
        cut = "in parts" if cost.spread else "one process"
        parallel = _time(cost.work / 100) if cost.spread else "not spread"
        output = _bytes(cost.output) if cost.output else "–"
        lines.append(
            f"| {cost.what} | {_time(cost.work)} | {parallel} | {_bytes(cost.memory)} | {output} "
            f"| {cost.exponent:.2f} | {cut} |"
        )
    return lines


def first_to_break(growth: Mapping[str, Any], memory: float = 24e9, seconds: float = 7 * 86_400.0) -> list[str]:
    """Sentences on what does not fit into a machine of so much memory, or takes longer than a week, the worst first."""
    over = []
    for cost in costs(growth):
        wait = cost.work / (100 if cost.spread else 1)
        worst = max(cost.memory / memory, wait / seconds)
        if worst > 1:
            why = f"{_bytes(cost.memory)} in one process" if cost.memory / memory >= wait / seconds else _time(wait)
            over.append((worst, f"{cost.what}: {why}"))
    return [sentence for _, sentence in sorted(over, reverse=True)]


def section(growth: Mapping[str, Any]) -> str:
    """What stands between the marks of docs/scale-costs.md."""
    broken = first_to_break(growth)
    measured = f"Measured with {growth['commit'] or 'no commit'}, {growth['date']}" + (
        ", small" if growth["small"] else ""
    )
    largest = "; ".join(f"{task['points'][-1]['size']:,} {task['along']}" for task in growth["tasks"].values())
    lines = [f"{measured}. Largest sizes measured: {largest}.", "", *table(growth), ""]
    lines += ["Beyond 24 GB in one process, or beyond a week on 100 cores, the worst first:", ""]
    lines += [f"{place}. {one}" for place, one in enumerate(broken, 1)] or ["Nothing."]
    return "\n".join(lines)


def rewrite(page: Path, growth: Mapping[str, Any]) -> None:
    """Put the current table between the marks of the page."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{section(growth)}\n\n{END}{after}")


def _time(seconds: float) -> str:
    for unit, length in (("years", 365 * 86_400), ("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.0f} s"


def _bytes(count: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:,.3g} {unit}"
    return f"{count / 1e3:.0f} kB"


if __name__ == "__main__":
    kept = json.loads((ROOT / "docs" / "results" / "bench.json").read_text())
    if "growth" not in kept:
        sys.exit("the growth benchmark has not been run: python -m benchmarks growth")
    print(section(kept["growth"]))
