"""Every benchmark by name, and how one is run: in a process of its own, with a limit, and stamped with its version.

A benchmark is a module with ``run(small) -> dict``:

    claim      what is claimed, in a sentence
    holds      whether it does; None: nothing is claimed, the figures are for comparison
    ratios     name → ``Ratio`` as JSON, over rounds taken in turns
    against    lines of the page of peers (``Against``)
    figures    what else was measured
    skipped    instead of all these: why it could not be measured
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers.environments import environment

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Benchmark:
    """``peer`` is the package in whose environment it runs, ours beneath; after ``seconds`` it is stopped."""

    module: str
    peer: str | None = None
    seconds: float = 1800.0


BENCHMARKS: Mapping[str, Benchmark] = {
    "release-throughput": Benchmark("release_throughput"),
    "release-memory": Benchmark("release_memory"),
    "ray-release": Benchmark("ray_release"),
    "training-cost": Benchmark("training_cost"),
    "threads": Benchmark("threads", seconds=5400.0),
    "audit-jobs": Benchmark("audit_jobs", seconds=5400.0),
    "sweep-cost": Benchmark("sweep_cost"),
    "help-time": Benchmark("help_time"),
    "filter-speed": Benchmark("filter_speed"),
    "phase-cost": Benchmark("phase_cost"),
    "phase-device": Benchmark("phase_device"),
    "dpsgd": Benchmark("dpsgd", peer="opacus"),
    "ars-noise": Benchmark("ars_noise", peer="art"),
    "attribute-inference": Benchmark("attribute_inference", peer="art"),
    "fedavg": Benchmark("federated_averaging", seconds=3600.0),
    "encrypted-inference": Benchmark("encrypted_inference", seconds=5400.0),
    "tables": Benchmark("synthetic_tables", seconds=14_400.0),
    "acs-marginals": Benchmark("acs_marginals"),
    "synth-time": Benchmark("synth_time"),
    "white-box": Benchmark("white_box"),
    "null-audits": Benchmark("null_audits", seconds=7200.0),
    "adult-releases": Benchmark("adult_releases"),
    "anonymeter": Benchmark("anonymeter_agreement"),
    "precision": Benchmark("precision", seconds=7200.0),
    "serve-load": Benchmark("serve_load"),
    "serve-fuzz": Benchmark("serve_fuzz"),
    "growth": Benchmark("growth", seconds=14_400.0),
}


_PARTS = (
    "claim", "holds", "ratios", "against", "figures", "skipped", "quality", "tasks", "peers without a figure",
)  # fmt: skip
"""Whatever else a benchmark gives is a figure."""


def run_apart(
    name: str,
    *,
    small: bool = False,
    seconds: float | None = None,
    tasks: Sequence[str] = (),
    largest: int | None = None,
) -> dict[str, Any]:
    """One benchmark in a process of its own; what it found, or why there is nothing, with version, date and machine.

    ``tasks`` and ``largest`` narrow what ``growth`` measures.
    """
    one = BENCHMARKS[name]
    limit = seconds or one.seconds
    stamp = _stamp(small)
    started = time.perf_counter()
    try:
        python = Path(sys.executable) if one.peer is None else environment(one.peer)
    except (OSError, subprocess.SubprocessError) as error:
        return {**_skipped(f"the environment of {one.peer} could not be made: {_last(error)}"), **stamp}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        narrowed = {"names": list(tasks), "largest": largest} if tasks or largest else {}
        asked = json.dumps({"small": small, **narrowed})
        command = [str(python), "-m", "benchmarks.catalogue", name, str(out), asked]
        why = _run(command, limit)
        found = json.loads(out.read_text()) if why is None else _skipped(why)
    return {**found, **stamp, "seconds": round(time.perf_counter() - started, 1)}


def _run(command: list[str], limit: float) -> str | None:
    """Why the command failed, or None; after the limit nothing that it started is left."""
    process = subprocess.Popen(command, cwd=ROOT, env=_paths(), start_new_session=True, stdout=sys.stderr)
    try:
        code = process.wait(limit)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            return f"not done after {limit:.0f} s"
        raise
    return None if code == 0 else f"it ended with {code}: see what it printed"


def _paths() -> dict[str, str]:
    """The environment in which the benchmarks and this tree's code are found."""
    beneath = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, beneath))}


def _skipped(why: str) -> dict[str, Any]:
    return {"claim": None, "holds": None, "skipped": why}


def _stamp(small: bool) -> dict[str, Any]:
    return {
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "small": small,
    }


def commit() -> str | None:
    """The commit that is measured; ``+`` if the code differs from it; None outside of a checkout."""
    head, changed = (
        subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
        for words in (["rev-parse", "--short=10", "HEAD"], ["status", "--porcelain", "--", "src", "benchmarks"])
    )
    return None if head.returncode else head.stdout.strip() + ("+" if changed.stdout.strip() else "")


def _last(error: Exception) -> str:
    said = getattr(error, "stderr", None) or str(error)
    return next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "no reason given")[:300]


def _child(name: str, out: Path, asked: dict[str, Any]) -> None:
    from importlib import import_module

    found = import_module(f"benchmarks.{BENCHMARKS[name].module}").run(**asked)
    figures = {key: value for key, value in found.items() if key not in _PARTS} | found.get("figures", {})
    out.write_text(json.dumps({key: found[key] for key in _PARTS if key in found} | {"figures": figures}))


if __name__ == "__main__":
    _child(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]))
