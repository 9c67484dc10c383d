"""A set four times larger than the memory that the process may use is fitted all the same."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

MEMORY = 600 * 2**20
"""Of it libraries and networks take about 380 MB."""
SHAPE = (3, 64, 64)
SIZE = int(np.prod(SHAPE))
ROWS = 4 * MEMORY // (4 * SIZE)
_FIT = """
import sys, numpy
try:
    numpy.ones(int(sys.argv.pop(1)), numpy.uint8)
    sys.exit("the limit does not hold")
except MemoryError:
    pass
from sfumato.cli.main import main
main()
"""


def pictures(path: Path) -> Path:
    """Bright and dark pictures, each with a few pixels of its own; small on disk."""
    rng = np.random.default_rng(0)
    base = rng.integers(0, 256, (2, SIZE), dtype=np.uint8) // np.array([[1], [3]], dtype=np.uint8)
    with pq.ParquetWriter(
        path, pa.schema([("image", pa.list_(pa.uint8(), SIZE)), ("dark", pa.int64())]), compression="zstd"
    ) as writer:
        for start in range(0, ROWS, 1000):
            count = min(1000, ROWS - start)
            dark = rng.integers(0, 2, count)
            x = base[dark]
            x[:, :8] = rng.integers(0, 256, (count, 8))
            cells = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), SIZE)
            writer.write_table(pa.table({"image": cells, "dark": dark}, schema=writer.schema))
    return path


@pytest.mark.slow
def test_a_set_four_times_larger_than_the_memory_limit_is_fitted(tmp_path: Path) -> None:
    source = pictures(tmp_path / "pictures.parquet")
    spool = tmp_path / "spool"
    spool.mkdir()
    command = [sys.executable, "-c", _FIT, str(MEMORY), "fit", "dnn", "--data", str(source), "--utility", "dark"]
    options = [
        "--x",
        "image:3x64x64",
        "--set",
        "epochs=1",
        "--set",
        "batch=512",
        "--set",
        "architecture=mlp",
        "--out",
        str(tmp_path / "run"),
    ]
    done = subprocess.run(
        [*command, *options, "--quiet"],
        env={**os.environ, "OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system", "TMPDIR": str(spool)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "fitted on" in done.stdout
    assert not [file for file in spool.rglob("*") if file.is_file()]
