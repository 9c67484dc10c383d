"""The benchmarks run, their ratios and exponents are right, and their pages follow from what is stored."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from benchmarks import __main__ as benchmarks_main
from benchmarks import catalogue, growth, pages, scale_costs
from benchmarks.against import Against
from benchmarks.catalogue import BENCHMARKS, Benchmark, run_apart
from benchmarks.interleaved import Ratio, Rounds, interleaved

ROOT = Path(__file__).parent.parent
STORED = ROOT / "docs" / "results" / "bench.json"


@pytest.mark.parametrize("words", [("benchmarks", "no-such"), ("benchmarks.peers", "--help")])
def test_benchmarks_start(words: tuple[str, str]) -> None:
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert "Traceback" not in said and "usage" in said, said[-1000:]


def test_every_benchmark_has_its_module() -> None:
    for name, one in BENCHMARKS.items():
        assert "def run(small: bool = False" in (ROOT / "benchmarks" / f"{one.module}.py").read_text(), name


def test_rounds_are_taken_in_turns_and_warm_ones_do_not_count() -> None:
    order: list[str] = []
    clock = iter(range(1000))
    ways = {"a": lambda: order.append("a"), "b": lambda: order.append("b")}
    rounds = interleaved(ways, 3, warm=1, clock=lambda: float(next(clock)))
    assert order == ["a", "b"] * 4
    assert rounds.seconds == {"a": [1.0] * 3, "b": [1.0] * 3}


def test_a_ratio_is_the_median_of_the_rounds_ratios_with_their_quartiles() -> None:
    rounds = Rounds({"over": [2.0, 30.0, 4.0], "under": [1.0, 10.0, 1.0], "again": [3.0, 10.0, 1.0]})
    assert rounds.ratio("over", "under") == Ratio(3.0, (2.5, 3.5), 3)
    assert rounds.ratio("over", ("under", "again")).median == 3.0, "over the mean of both"


def test_who_is_ahead_needs_both_quartiles_and_knows_which_way_is_better() -> None:
    def ahead(low: float, high: float, better: Any) -> str:
        return Against("p", "t", "q", 1.0, 1.0, Ratio(1.0, (low, high), 3), better).ahead

    assert ahead(0.5, 0.9, "lower") == "sfumato" == ahead(1.1, 1.2, "higher")
    assert ahead(0.5, 0.9, "higher") == "peer" == ahead(1.1, 1.2, "lower")
    assert ahead(0.9, 1.1, "lower") == "even" == ahead(0.9, 1.1, "higher")
    few, many = (Against.shares("p", "t", "q", 0.9, 0.88, counts=(n, n)) for n in (20, 20_000))
    assert (few.ahead, many.ahead) == ("even", "sfumato")


def test_the_exponent_is_the_slope_of_the_last_decade_in_every_round() -> None:
    slow_start = {1: [50.0, 50.0], 100: [1.0, 1.0], 1000: [10.0, 100.0]}
    found = growth.exponent(slow_start)
    assert found.quartiles == pytest.approx((1.25, 1.75)) and found.rounds == 2
    assert growth.exponent({10: [0.0], 100: [0.0]}).median == 0.0, "what costs nothing does not grow"


def test_growth_of_a_task_is_measured_in_processes_of_their_own() -> None:
    found = growth.run(small=True, names=["pool"])
    task = found["tasks"]["pool"]
    assert [point["size"] for point in task["points"]] == [2, 4]
    assert all(0 < point["own MB"] <= point["peak MB"] and point["seconds"] > 0 for point in task["points"])
    assert found["holds"] is None, "two small sizes settle nothing"


def test_a_benchmark_runs_apart_and_says_its_version() -> None:
    found = run_apart("help-time", small=True)
    assert found["holds"] in (True, False) and found["small"] is True
    assert found["date"] == time.strftime("%Y-%m-%d", time.gmtime()) and "cores" in found["machine"]
    assert found["commit"] == catalogue.commit()
    assert found["ratios"]["help over the interpreter's own start"]["rounds"] == 3


def test_a_benchmark_that_takes_too_long_or_fails_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_apart("help-time", seconds=0.01)["skipped"] == "not done after 0 s"
    monkeypatch.setitem(catalogue.BENCHMARKS, "broken", Benchmark("no_such_module"))  # type: ignore[arg-type]
    assert run_apart("broken")["skipped"].startswith("it ended with 1")


def test_a_peer_that_does_not_install_is_a_reason_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_name: str) -> Path:
        raise subprocess.CalledProcessError(1, "pip", stderr="x\nERROR: No matching distribution\n")

    monkeypatch.setattr(catalogue, "environment", broken)
    found = run_apart("dpsgd")
    assert found["skipped"] == "the environment of opacus could not be made: ERROR: No matching distribution"


POINTS = [
    {"size": 10, "seconds": 1.0, "range": [1.0, 1.0], "peak MB": 300, "own MB": 100.0},
    {"size": 100, "seconds": 10.0, "range": [9.0, 11.0], "peak MB": 1200, "own MB": 1000.0},
]
LINEAR, STEEP = ({"median": one, "quartiles": [one, one], "rounds": 3} for one in (1.0, 1.5))


def growth_of(time_: dict[str, Any], along: str = "records") -> dict[str, Any]:
    return {
        "about": "work", "along": along, "points": POINTS, "exponent": time_, "memory exponent": LINEAR,
        "why": "It sorts.",
        "commit": "abc",
    }  # fmt: skip


def test_pages_show_every_ratio_and_explain_what_grows_too_fast(tmp_path: Path) -> None:
    stamp = {"commit": "abc", "date": "2026-01-01", "machine": "m", "small": False, "holds": False, "claim": "c"}
    line = Against("Rival", "task", "seconds", 2.0, 1.0, Ratio(2.0, (1.9, 2.1), 3), note="It promises less.")
    results = {
        "one": {**stamp, "ratios": {"a over b": {**LINEAR, "at most": 0.5}}, "against": [line.to_json()]},
        "two": {**stamp, "skipped": "no network"},
        "growth": {**stamp, "tasks": {"fit": growth_of(STEEP), "release": growth_of(LINEAR)}},
    }
    pages.write(results, tmp_path)
    bench, peers = ((tmp_path / name).read_text() for name in ("bench.md", "peers.md"))
    assert (
        "| a over b | 1 | 1 … 1 | 3 | ≤ 0.5 |" in bench
        and "no network" in bench
        and "| **no** | abc, 2026-01-01 |" in bench
    )
    assert bench.count("Above linear") == 1 and "It sorts." in bench
    assert "| 2 (1.9 … 2.1) | peer | abc, 2026-01-01 |" in peers and "- Rival: It promises less." in peers
    for name in ("bench-ratios.svg", "bench-peers.svg", "bench-growth.svg"):
        assert (tmp_path / name).read_text().startswith("<?xml"), name


def test_growth_is_kept_task_by_task(tmp_path: Path) -> None:
    keep, path = benchmarks_main._keep, tmp_path / "bench.json"
    keep(
        path,
        "growth",
        {"holds": None, "small": False, "tasks": {name: growth_of(LINEAR) for name in growth.RECORDS[1:]}},
    )
    keep(path, "growth", {"holds": None, "small": False, "tasks": {growth.RECORDS[0]: growth_of(LINEAR)}})
    kept = json.loads(path.read_text())["growth"]
    assert set(kept["tasks"]) == set(growth.RECORDS) and kept["holds"] is True
    keep(path, "growth", {"holds": None, "small": False, "tasks": {"fit": growth_of(STEEP)}})
    assert json.loads(path.read_text())["growth"]["holds"] is False


def test_costs_at_scale_follow_from_the_largest_point_and_the_exponent() -> None:
    tasks = {"fit": growth_of(STEEP), "users": growth_of(STEEP, "users")}
    users, fit = scale_costs.costs({"tasks": tasks})
    assert fit.work == pytest.approx(10.0 * (scale_costs.RECORDS / 100) ** 1.5)
    assert fit.memory == pytest.approx(200e6 + 1000e6 * scale_costs.RECORDS / 100)
    assert users.work == pytest.approx(10.0 * scale_costs.DEVICES / 100), "in parts of the size that was measured"
    assert users.memory == pytest.approx(1200e6)
    assert scale_costs.first_to_break({"tasks": tasks})[0].startswith("fit")


def test_the_stored_pages_follow_from_the_stored_figures(tmp_path: Path) -> None:
    kept = json.loads(STORED.read_text())
    pages.write(kept, tmp_path)
    for name in ("bench.md", "peers.md"):
        assert (tmp_path / name).read_text() == (STORED.parent / name).read_text(), "python -m benchmarks --pages"
    if "growth" in kept:
        assert scale_costs.section(kept["growth"]) in (ROOT / "docs" / "scale-costs.md").read_text()
    assert all(one.get("date") or one["commit"] is None for one in kept.values()), "every figure has its version"
