"""``make bench``: every speed and memory claim as a ratio or a limit, measured in one run.

``python -m benchmarks [NAME…]`` runs some of them; the figures end up in docs/results/bench.json and bench.md.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import (
    ars_noise,
    audit_jobs,
    dpsgd,
    filter_speed,
    help_time,
    null_audits,
    phase_cost,
    phase_device,
    precision,
    ray_release,
    release_memory,
    release_throughput,
    sweep_cost,
    synth_time,
    threads,
    white_box,
)

BENCHMARKS = {
    "release-throughput": release_throughput.run,
    "release-memory": release_memory.run,
    "ray-release": ray_release.run,
    "sweep-cost": sweep_cost.run,
    "help-time": help_time.run,
    "filter-speed": filter_speed.run,
    "phase-cost": phase_cost.run,
    "phase-device": phase_device.run,
    "dpsgd": dpsgd.run,
    "ars-noise": ars_noise.run,
    "synth-time": synth_time.run,
    "null-audits": null_audits.run,
    "white-box": white_box.run,
    "threads": threads.run,
    "audit-jobs": audit_jobs.run,
    "precision": precision.run,
}
RESULTS = Path(__file__).parent.parent / "docs" / "results" / "bench.json"


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        print(f"unknown benchmark {unknown[0]}; known: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    failed = 0
    for name in names or BENCHMARKS:
        result = BENCHMARKS[name]()
        kept[name] = {**result, "machine": f"{platform.machine()}, {os.cpu_count()} cores"}
        failed += not result["holds"]
        print(f"{name}: {'holds' if result['holds'] else 'DOES NOT HOLD'}", json.dumps(result, indent=2), flush=True)
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(kept, indent=2) + "\n")
    RESULTS.with_suffix(".md").write_text(page(kept))
    return 1 if failed else 0


_HEAD = """# Results: speed and memory

`make bench` measures these, `python -m benchmarks NAME` one of them. Ratios are medians of interleaved rounds in one
run; all figures are in [bench.json](bench.json).

"""


def page(results: Mapping[str, Any]) -> str:
    """Every claim with its verdict and figures, as Markdown."""
    lines = ["| benchmark | claim | holds | measured |", "|---|---|---|---|"]
    for name, result in results.items():
        said = {key: value for key, value in result.items() if key not in ("claim", "holds", "machine", "quality")}
        verdict = "yes" if result["holds"] else "**no**"
        lines.append(f"| `{name}` | {result['claim']} | {verdict} | {_text(said)} |")
    return _HEAD + "\n".join(lines) + "\n"


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {_text(one)}" for key, one in value.items())
    return ", ".join(map(_text, value)) if isinstance(value, list) else str(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
