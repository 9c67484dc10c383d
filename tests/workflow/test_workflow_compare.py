"""Comparisons: the front, the names of points, warm starts, effort and the demo."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sfumato.auditing import SMOKE
from sfumato.core.compute import Compute, using
from sfumato.core.dataset import Splits
from sfumato.core.errors import DataError, UsageError
from sfumato.core.run_folder import read_tensors
from sfumato.data import load_splits
from sfumato.testing import TINY
from sfumato.workflow import Point, compare, demo, fit_run, resolve, sweep
from sfumato.workflow.compare import front

DATA = {"source": "digits", "limit": 150}


@pytest.fixture(scope="module")
def splits() -> Splits:
    return load_splits(**DATA)


def result(point: str, accuracy: float, error: float, better: str = "higher") -> dict[str, Any]:
    return {
        "point": point,
        "utility": [{"primary": False, "value": 0.0}, {"primary": True, "value": accuracy}],
        "worst": {"reconstruction": {"value": error, "better_for_owner": better}},
    }


@pytest.mark.parametrize(
    ("places", "best"),
    [
        ({"a": (0.9, 0.1), "b": (0.8, 0.2), "c": (0.7, 0.15)}, ["a", "b"]),
        ({"a": (0.9, 0.1)}, ["a"]),
        ({"a": (0.9, 0.1), "b": (0.9, 0.1)}, ["a", "b"]),
        ({"a": (0.9, 0.1), "b": (0.9, 0.2)}, ["b"]),
        ({"a": (0.9, 0.1), "b": (0.95, 0.1)}, ["b"]),
        ({"a": (0.5, 0.5), "b": (0.6, 0.6), "c": (0.4, 0.7), "d": (0.7, 0.1)}, ["b", "c", "d"]),
    ],
)
def test_the_front_is_what_no_other_point_beats(places: Mapping[str, tuple[float, float]], best: list[str]) -> None:
    assert front([result(point, *place) for point, place in places.items()]) == best


def test_the_front_knows_which_way_a_metric_points() -> None:
    points = [result("sharp", 0.9, 0.9, "lower"), result("blurred", 0.9, 0.2, "lower")]
    assert front(points) == ["blurred"]


def test_the_front_leaves_out_points_without_the_threat() -> None:
    assert front([result("a", 0.9, 0.1), {**result("b", 1.0, 1.0), "worst": {}}]) == ["a"]


def test_a_point_is_named_after_its_knob() -> None:
    assert Point("ran", {"lam": 0.1, "epochs": 3}).id == "ran-lam-0.1"
    assert Point("dnn", {"epochs": 3}).id == "dnn"
    assert Point("dnn", {"epochs": 3}, "epochs").id == "dnn-epochs-3"


def test_two_points_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'dnn'"):
        compare([Point("dnn", {"epochs": 1}), Point("dnn", {"epochs": 2})], DATA, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_sweep_over_any_parameter_fits_every_value(tmp_path: Path, splits: Splits) -> None:
    results = sweep("dnn", DATA, "epochs", [1, 2], tmp_path / "s", effort=TINY, splits=splits)
    assert [one["point"] for one in results] == ["dnn-epochs-1", "dnn-epochs-2"]
    lengths = [len((tmp_path / f"s/points/{one['point']}/metrics.jsonl").read_text().splitlines()) for one in results]
    assert lengths == [1, 2]


def test_a_later_point_trains_on_from_the_one_before_for_a_quarter_of_the_epochs(
    tmp_path: Path, splits: Splits
) -> None:
    def epochs(run: Path) -> int:
        return len((run / "metrics.jsonl").read_text().splitlines())

    params = {"epochs": 4, "k": 1}
    sweep("ran", DATA, "lam", [0.5, 0.1], tmp_path / "warm", params=params, effort=TINY, splits=splits)
    first, later = (tmp_path / "warm/points" / f"ran-lam-{lam}" for lam in (0.5, 0.1))
    assert (epochs(first), epochs(later)) == (4, 1)
    config = resolve("ran", DATA, {**params, "lam": 0.1}, seed=0)
    fit_run(config, tmp_path / "cold", splits=splits)
    fit_run(config, tmp_path / "again", start=first, splits=splits)
    weights = [read_tensors(run / "checkpoint/encoder.safetensors") for run in (later, tmp_path / "again")]
    assert all((weights[0][name] == tensor).all() for name, tensor in weights[1].items())
    assert epochs(tmp_path / "cold") == 4


PLAIN = [Point("none", {"epochs": 1})]


@pytest.fixture(scope="module")
def compared(splits: Splits, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished comparison of one point."""
    out = tmp_path_factory.mktemp("compared") / "c"
    compare(PLAIN, DATA, out, effort=TINY, splits=splits)
    return out


def test_points_of_another_effort_are_not_passed_off_as_this_one(compared: Path, splits: Splits) -> None:
    with pytest.raises(DataError, match="another effort"):
        compare(PLAIN, DATA, compared, effort=SMOKE, splits=splits)


def test_points_of_another_precision_are_not_compared(compared: Path, splits: Splits) -> None:
    with using(Compute(precision="bf16")), pytest.raises(DataError, match=r"computed in fp32 .* --precision fp32"):
        compare(PLAIN, DATA, compared, effort=TINY, splits=splits)


def test_an_effort_stored_before_there_was_a_geometry_is_the_same_effort(
    compared: Path, tmp_path: Path, splits: Splits
) -> None:
    shutil.copytree(compared, tmp_path / "c")
    scores = tmp_path / "c/points/none/scores.json"
    stored = json.loads(scores.read_text())
    attacks = stored["attacks"]
    del stored["effort"]["geometry"]
    scores.write_text(json.dumps(stored))
    assert compare(PLAIN, DATA, tmp_path / "c", effort=TINY, splits=splits)[0]["attacks"] == attacks
    with pytest.raises(DataError, match="another effort"):
        compare(PLAIN, DATA, tmp_path / "c", effort=replace(TINY, geometry="umap"), splits=splits)


@pytest.mark.parametrize("text", ["{}", "[]", '{"points": []}'])
def test_a_comparison_that_cannot_be_read_is_not_gone_on_with(tmp_path: Path, text: str) -> None:
    (tmp_path / "front.json").write_text(text)
    with pytest.raises(DataError, match="another comparison"):
        compare([Point("dnn", {"epochs": 1})], DATA, tmp_path)


def test_the_demo_makes_one_report_and_does_no_point_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "POINTS", (Point("none", {"epochs": 1}), Point("ran", {"lam": 0.1, "epochs": 1, "k": 1})))
    monkeypatch.setattr(demo, "DATA", {**DATA, "utility": ["odd"], "private": ["ge5"]})
    monkeypatch.setattr(demo, "Effort", lambda **_: TINY)
    steps: list[str] = []
    results, page = demo.run_demo(tmp_path / "d", say=steps.append)
    assert page.read_text().startswith("<!")
    assert [line.split()[0] for line in demo.summary(results, page)] == ["none", "ran", "report:"]
    done = len(steps)
    again, _ = demo.run_demo(tmp_path / "d", say=steps.append)
    assert again == results
    assert len(steps) == done


def test_a_refused_fit_leaves_no_folder(tmp_path: Path, splits: Splits) -> None:
    unlabelled = replace(splits, owner=replace(splits.owner, utility={}))
    with pytest.raises(DataError, match="no utility label"):
        fit_run(resolve("dnn", DATA, {}, seed=0), tmp_path / "new", splits=unlabelled)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("name", "value"), [("lam", "x"), ("epochs", 1.5), ("epochs", True), ("architecture", 3)])
def test_a_parameter_of_another_type_is_refused(name: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"ran: {name} must be"):
        resolve("ran", DATA, {name: value}, seed=0)


def test_a_whole_number_is_a_number() -> None:
    assert resolve("ran", DATA, {"lam": 1}, seed=0)["params"]["lam"] == 1
