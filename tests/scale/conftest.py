"""Two nodes of a Ray cluster on this machine, each with one worker."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
STORE = 100 * 2**20


class TwoNodes:
    """The cluster's address, and its worker processes by node."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self._folder = tempfile.TemporaryDirectory(
            ignore_cleanup_errors=True, prefix="ray", dir="/tmp"
        )  # or other programs find and join them
        one = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False, "temp_dir": self._folder.name}
        self._cluster = Cluster(initialize_head=True, head_node_args=one)
        self.second = self._cluster.add_node(num_cpus=1, object_store_memory=STORE)
        self.address: str = self._cluster.address

    def workers(self, doing: str) -> list[int]:
        """Processes of the second node that do something whose name holds ``doing``."""
        (raylet,) = self.second.all_processes["raylet"]
        return [
            int(one.name)
            for one in Path("/proc").iterdir()
            if one.name.isdigit() and _child(int(one.name), raylet.process.pid, doing)
        ]

    def lose_second(self) -> None:
        """The second machine is switched off."""
        self._cluster.remove_node(self.second, allow_graceful=False)

    def stop(self) -> None:
        self._cluster.shutdown()
        self._folder.cleanup()


def _child(pid: int, parent: int, doing: str) -> bool:
    try:
        found = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        return found == parent and doing in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


@pytest.fixture
def two_nodes() -> Iterator[TwoNodes]:
    nodes = TwoNodes()
    try:
        yield nodes
    finally:
        nodes.stop()


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Path]:
    """Writes a Parquet file of so many pictures of 28 × 28, with a label and a subject."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    def write(rows: int, name: str = "pictures.parquet", group: int = 5000) -> Path:
        rng = np.random.default_rng(rows)
        x = rng.integers(0, 256, rows * 784, dtype=np.uint8)
        columns: dict[str, Any] = {
            "image": pa.FixedSizeListArray.from_arrays(pa.array(x), 784),
            "dark": rng.integers(0, 2, rows),
        }
        pq.write_table(pa.table(columns), tmp_path / name, row_group_size=group)
        return tmp_path / name

    return write
