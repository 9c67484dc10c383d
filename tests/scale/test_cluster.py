"""Two nodes of Ray: a worker is killed, a node is lost, and every figure and row is that of one machine."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from sfumato.core.errors import DataError
from sfumato.testing import TINY
from sfumato.workflow import UNAUDITED, Point, compare, fit_run, release_run, resolve
from sfumato.workflow.processes import on

if TYPE_CHECKING:
    from conftest import TwoNodes

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]
pytest.importorskip("ray")
ROWS = 12 * 4096 + 777


def meanwhile(ready: Callable[[], bool], act: Callable[[], bool], heard: list[str]) -> threading.Thread:
    """Waits until something is ``ready`` and acts until that has worked."""

    def watch() -> None:
        ends = time.monotonic() + 120
        while time.monotonic() < ends:
            if ready() and act():
                heard.append("done")
                return
            time.sleep(0.02)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


@pytest.fixture
def run(tmp_path: Path, table: Callable[..., Path]) -> Path:
    data = {"source": str(table(600, "small.parquet")), "x": ["image"], "utility": ["dark"]}
    fit_run(resolve("dnn", data, {"epochs": 1}, seed=0), tmp_path / "run")
    return tmp_path / "run"


def test_a_release_with_a_killed_worker_is_the_release_of_one_machine(
    run: Path, tmp_path: Path, table: Callable[..., Path], two_nodes: TwoNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sfumato.scale import cluster, release_over, release_parts

    monkeypatch.setattr(release_parts, "FEWEST_ROWS", 4096)
    source = str(table(ROWS, group=4096))
    here = release_run(run, source, tmp_path / "here", labels=True, warrant=UNAUDITED)
    staging, killed = tmp_path / ".there.parts", list[str]()

    def kill() -> bool:
        for pid in two_nodes.workers("PartReleaser")[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                return True
        return False

    class Enough(Exception):
        pass

    def stop(done: int) -> None:
        if done > ROWS // 2:
            raise Enough

    with cluster(two_nodes.address) as workers:
        assert workers.workers == 2
        meanwhile(lambda: any(staging.glob("part-*.json")), kill, killed)
        with pytest.raises(Enough):
            release_over(workers, run, source, tmp_path / "there", labels=True, say=stop, warrant=UNAUDITED)
        assert killed
        kept = {file.name: file.stat().st_ino for file in staging.glob("part-*.parquet")}
        assert len(kept) >= 6
        assert not (tmp_path / "there").exists()
        with pytest.raises(DataError, match="holds parts of another release"):
            release_over(workers, run, source, tmp_path / "there", warrant=UNAUDITED)
        there = release_over(workers, run, source, tmp_path / "there", labels=True, warrant=UNAUDITED)
    differ = {"release": "", "payload": ""}  # a folder of parts, and one file
    assert {**there, **differ} == {**here, **differ}
    assert there["payload"]["files"] == ["release.parquet/*.parquet"]
    one, other = (pq.read_table(tmp_path / name / "release.parquet") for name in ("here", "there"))
    assert one.num_rows == ROWS
    assert one.equals(other)
    files = {file.name: file.stat().st_ino for file in (tmp_path / "there" / "release.parquet").iterdir()}
    assert len(files) == 13
    assert sum(files[name] == inode for name, inode in kept.items()) >= 6, "finished parts were made again"
    assert not staging.exists()


def test_what_a_worker_refuses_is_the_sentence_of_one_machine(
    run: Path, tmp_path: Path, table: Callable[..., Path], two_nodes: TwoNodes
) -> None:
    from sfumato.scale import cluster, release_over

    source = table(5000)
    broken = pq.read_table(source).drop(["dark"])
    pq.write_table(broken, source)
    with pytest.raises(DataError) as here:
        release_run(run, str(source), tmp_path / "here", labels=True, warrant=UNAUDITED)
    with cluster(two_nodes.address) as workers, pytest.raises(DataError) as there:
        release_over(workers, run, str(source), tmp_path / "there", labels=True, warrant=UNAUDITED)
    assert str(there.value) == str(here.value)


def figures(folder: Path) -> list[Any]:
    found = json.loads((folder / "scores.json").read_text())
    keep = ("attack", "metric", "target", "value", "ci", "baseline", "control", "leakage")
    return [[score[name] for name in keep] for score in (*found["utility"], *found["attacks"])]


def test_a_sweep_that_loses_a_node_has_the_figures_of_one_machine(tmp_path: Path, two_nodes: TwoNodes) -> None:
    from sfumato.scale import cluster

    points = [Point("noisy", {"noise": noise, "epochs": 1}, "noise") for noise in (0.1, 0.2, 0.4)]
    data = {"source": "digits", "limit": 150}
    here, there, lost = tmp_path / "here", tmp_path / "there", list[str]()
    compare(points, data, here, effort=TINY, warm_start=False)

    def lose() -> bool:
        two_nodes.lose_second()
        return True

    with cluster(two_nodes.address) as workers, on(workers):
        meanwhile(lambda: len(list((there / "points").glob("*/mechanism.json"))) >= 1, lose, lost)
        compare(points, data, there, effort=TINY, warm_start=False)
    assert lost
    for point in points:
        assert figures(there / "points" / point.id) == figures(here / "points" / point.id)
    assert not list(there.rglob(".*.part*"))
