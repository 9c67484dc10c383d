"""A million records are released in bounded memory."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.measured_process import measured, prepared

RECORDS = 1_000_000
LIMIT_GB = 1.5


def run(small: bool = False) -> dict[str, Any]:
    """A release of a Parquet file of a million 28×28 records, in a process of its own."""
    records = 10_000 if small else RECORDS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepared("release", records, folder)
        found = measured("release", records, folder)
    peak = found.peak_bytes / 2**30
    return {
        "claim": f"releasing {RECORDS:,} 28×28 records stays below {LIMIT_GB} GB of resident memory",
        "holds": peak < LIMIT_GB,
        "figures": {
            "peak GB": round(peak, 3),
            "records": records,
            "records a second": round(records / found.seconds),
            "GB of the records as float32": round(records * 784 * 4 / 2**30, 2),
            "limit in GB": LIMIT_GB,
        },
    }
