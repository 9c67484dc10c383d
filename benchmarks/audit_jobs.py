"""An audit in as many processes as there are cores, beside the same audit in one: the same figures, sooner."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.interleaved import Ratio
from sfumato.core import compute

MECHANISMS = {"ran": ["--set", "epochs=4"], "phase": ["--set", "epochs=4"], "ars": ["--set", "epochs=6"]}
TARGET = 0.65


def run(small: bool = False) -> dict[str, Any]:
    """5,000 embedded digits at default effort; wall and processor time of ``--jobs N`` over ``--jobs 1``."""
    ratios: dict[str, Any] = {}
    same: dict[str, bool] = {}
    few = ["--limit", "600"] if small else []
    for mechanism, more in list(MECHANISMS.items())[: 1 if small else None]:
        with tempfile.TemporaryDirectory() as folder:
            run_folder = str(Path(folder) / "run")
            _command(["fit", mechanism, "--data", "digits", "--private", "ge5", *more, *few, "--out", run_folder])
            one, several = (_audit(run_folder, jobs) for jobs in (1, compute.cores()))
        wall, processor = (Ratio.of([several[clock] / one[clock]]).to_json() for clock in (0, 1))
        name = f"audit {mechanism}, a process for each core over one"
        ratios |= {name: {**wall, "at most": TARGET}, f"{name}, processor time": processor}
        same[mechanism] = one[2] == several[2]
    return {
        "claim": f"an audit in one process a core takes at most {TARGET} × the time of one, for the same figures",
        "holds": all(same.values())
        and all(one["median"] <= one.get("at most", one["median"]) for one in ratios.values()),
        "ratios": ratios,
        "figures": {"same figures": same},
    }


def _audit(folder: str, jobs: int) -> tuple[float, float, Any]:
    before, started = os.times(), time.perf_counter()
    text = _command(["audit", folder, "--again", "--json", "--jobs", str(jobs)])
    wall, after = time.perf_counter() - started, os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, processor, [{**score, "seconds": 0.0} for score in json.loads(text)["attacks"]]


def _command(words: list[str]) -> str:
    command = [sys.executable, "-c", "from sfumato.cli.main import main; main()", *words, "--quiet"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
