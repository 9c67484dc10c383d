"""``make bench``: every speed, memory and strength claim as a ratio or a limit, measured side by side.

``python -m benchmarks [NAME…]`` runs some of them. Each runs in a process of its own, with what it compares with in the
same process or the same rounds. Figures end up in ``bench.json`` and the pages beside it.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks import pages, scale_costs
from benchmarks.catalogue import BENCHMARKS, run_apart
from benchmarks.growth import linear
from benchmarks.tasks import TASKS

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
TRIED = ROOT / "build" / "bench"
"""Where figures of ``--small`` go: they say that a benchmark works, nothing else."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure, and rebuild the pages.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; default: all of them")
    parser.add_argument("--small", action="store_true", help="few records and rounds, to see that it works")
    parser.add_argument("--out", type=Path, help="folder of bench.json and the pages (docs/results, or build/bench)")
    parser.add_argument("--pages", action="store_true", help="measure nothing, rebuild the pages from bench.json")
    parser.add_argument("--seconds", type=float, help="a limit for each benchmark instead of its own")
    parser.add_argument("--tasks", nargs="+", default=[], choices=TASKS, metavar="TASK", help="of growth, only these")
    parser.add_argument("--largest", type=int, help="of growth, no size above this one")
    given = parser.parse_args(arguments)
    if (given.tasks or given.largest) and given.names != ["growth"]:
        parser.error("--tasks and --largest are for the benchmark growth alone: python -m benchmarks growth …")
    for name in given.names:
        if name not in BENCHMARKS:
            parser.error(f"unknown benchmark {name}; known: {', '.join(BENCHMARKS)}")
    out = given.out or (TRIED if given.small else RESULTS)
    out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in [] if given.pages else given.names or BENCHMARKS:
        print(f"{name} …", file=sys.stderr, flush=True)
        result = run_apart(name, small=given.small, seconds=given.seconds, tasks=given.tasks, largest=given.largest)
        _keep(out / "bench.json", name, result)
        failed += result["holds"] is False
        print(f"{name}: {_verdict(result)}", json.dumps(result, indent=2), flush=True)
    kept = json.loads((out / "bench.json").read_text()) if (out / "bench.json").exists() else {}
    pages.write(kept, out)
    if out == RESULTS and "growth" in kept:
        scale_costs.rewrite(ROOT / "docs" / "scale-costs.md", kept["growth"])
    return 1 if failed else 0


def _keep(path: Path, name: str, result: dict[str, Any]) -> None:
    """Store one result at once: what comes after it may fail or be stopped."""
    kept = json.loads(path.read_text()) if path.exists() else {}
    if name == "growth" and "tasks" in result and "tasks" in kept.get(name, {}):
        tasks = {**kept[name]["tasks"], **result["tasks"]}  # measured some at a time: hours are not lost
        result = {**result, "tasks": tasks, "holds": None if result["small"] else linear(tasks)}
    merged = {**kept, name: result}
    known = [one for one in BENCHMARKS if one in merged]
    part = path.with_suffix(".part")
    part.write_text(json.dumps({one: merged[one] for one in known}, indent=2) + "\n")
    part.replace(path)


def _verdict(result: dict[str, Any]) -> str:
    if "skipped" in result:
        return f"skipped, {result['skipped']}"
    return {True: "holds", False: "DOES NOT HOLD", None: "measured"}[result["holds"]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
