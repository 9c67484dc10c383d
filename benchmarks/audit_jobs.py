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

from sfumato.core import compute

MECHANISMS = {"ran": ["--set", "epochs=4"], "phase": ["--set", "epochs=4"], "ars": ["--set", "epochs=6"]}
TARGET = 0.65


def run() -> dict[str, Any]:
    """5,000 embedded digits at default effort; wall and processor time of ``--jobs N`` over ``--jobs 1``."""
    found: dict[str, Any] = {}
    for mechanism, more in MECHANISMS.items():
        with tempfile.TemporaryDirectory() as folder:
            run_folder = str(Path(folder) / "run")
            _command(["fit", mechanism, "--data", "digits", "--private", "ge5", *more, "--out", run_folder])
            one, several = (_audit(run_folder, jobs) for jobs in (1, compute.cores()))
        wall, processor = (round(several[place] / one[place], 3) for place in (0, 1))
        found[mechanism] = {"wall": wall, "processor": processor, "same figures": one[2] == several[2]}
    return {
        "claim": f"an audit in one process a core takes at most {TARGET} × the time of one, for the same figures",
        **found,
        "target": TARGET,
        "holds": all(each["wall"] <= TARGET and each["same figures"] for each in found.values()),
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
