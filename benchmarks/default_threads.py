"""No fit is slower with the threads that sfumato chooses than with one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.interleaved import interleaved

TARGET = 1.05
ROUNDS = 5
RECORDS = 2000
FITS = {"ran": ("epochs=2",), "filter": ("steps=1000",), "ars": ("epochs=1",)}


def run(small: bool = False) -> dict[str, Any]:
    """``sfumato fit`` on 2,000 digits as it comes and with ``--threads 1``, in turns. Nothing holds torch back."""
    environ = {name: value for name, value in os.environ.items() if name not in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    ratios = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environ["SFUMATO_STATE"] = str(folder / "state")
        numbers = count()
        data = ["--data", "digits", "--utility", "odd", "--private", "ge5", "--limit", str(600 if small else RECORDS)]

        def fit(mechanism: str, *options: str, out: Path | None = None) -> None:
            target = ["--out", str(out or folder / str(next(numbers)))]
            command = [sys.executable, "-m", "sfumato", "fit", mechanism, *data, "--quiet", *target, *options]
            subprocess.run(command, check=True, env=environ, stdout=subprocess.DEVNULL)

        fit("vae", "--set", "epochs=3", out=folder / "vae")
        for mechanism in ("filter",) if small else FITS:
            settings = [word for one in FITS[mechanism] for word in ("--set", one)]
            settings += ["--set", f"base={folder / 'vae'}"] if mechanism == "filter" else []
            ways = {
                "default": partial(fit, mechanism, *settings),
                "one": partial(fit, mechanism, *settings, "--threads", "1"),
            }
            rounds = interleaved(ways, 2 if small else ROUNDS)
            ratios[f"fit {mechanism}, default over one thread"] = rounds.ratio("default", "one")
    return {
        "claim": f"fits on {RECORDS:,} digits take ≤ {TARGET} × their time with one thread",
        "holds": all(one.median <= TARGET for one in ratios.values()),
        "ratios": {name: {**one.to_json(), "at most": TARGET} for name, one in ratios.items()},
    }
