"""A million records are released in bounded memory."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.data import load
from sfumato.workflow import fit_run, resolve

RECORDS = 1_000_000
LIMIT_GB = 1.5


def run() -> dict[str, Any]:
    """``sfumato release`` in a process of its own on a Parquet file of a million 28×28 records."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        source = _write(root / "million.parquet")
        fit_run(
            resolve("ran", {"source": str(_small(root)), "utility": ["digit"]}, {"epochs": 1}, seed=0), root / "run"
        )
        command = [sys.executable, "-m", "sfumato", "release", str(root / "run"), "--data", str(source)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        started = time.perf_counter()
        subprocess.run([*command, "--out", str(root / "out"), "--quiet"], check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - started
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        rows = pq.read_metadata(root / "out" / "release.parquet").num_rows
    peak_gb = max(before, peak) / 2**20
    return {
        "claim": "releasing 1,000,000 28×28 records stays below 1.5 GB of resident memory",
        "peak_gb": round(peak_gb, 3),
        "records": rows,
        "records_per_second": round(rows / seconds),
        "raw_size_gb_as_float32": round(RECORDS * 784 * 4 / 2**30, 2),
        "target_gb": LIMIT_GB,
        "holds": rows == RECORDS and peak_gb < LIMIT_GB,
    }


def _pixels() -> Any:
    digits = load("digits")
    return np.round(digits.x * 255).astype(np.uint8).reshape(len(digits), -1), digits.utility["digit"]


def _table(x: Any, y: Any) -> Any:
    return pa.table({"image": pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), 784), "digit": pa.array(y)})


def _small(root: Path) -> Path:
    """1,000 records of the same columns to fit on."""
    x, y = _pixels()
    pq.write_table(_table(x[::5], y[::5]), root / "small.parquet")
    return root / "small.parquet"


def _write(path: Path) -> Path:
    x, y = _pixels()
    with pq.ParquetWriter(path, _table(x[:1], y[:1]).schema) as writer:
        for _ in range(RECORDS // len(x)):
            writer.write_table(_table(x, y))
    return path
