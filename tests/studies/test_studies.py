"""Studies: a smoke run end to end, and statements that follow from the figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sfumato.auditing import Effort
from sfumato.core.errors import UsageError
from sfumato.mechanisms import mechanism_class
from sfumato.studies import SCALES, ran, run_study, studies
from sfumato.studies.base import Scale
from sfumato.workflow import Point

TINY = Effort(attack_epochs=1, attack_width=16, attack_steps=2, task_epochs=1, candidates=20)
ROW = {"name", "metric", "better", "paper", "ours", "ci", "holds"}


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("studies") / "family"


@pytest.fixture
def folder(family: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where studies of one family find each other's points; with next to no records and effort."""
    real = ran.FIGURE3.scale

    def scale(data: str, name: str) -> Scale:
        return Scale(real(data, name).points, TINY, limit=150)

    for study in studies():
        monkeypatch.setitem(study.__dict__, "scale", scale)
    return family


def test_a_smoke_study_runs_end_to_end_and_is_not_done_twice(folder: Path) -> None:
    steps: list[str] = []
    found = run_study("ran-figure3", data="digits", scale="smoke", out=folder, say=steps.append)
    assert set(found) >= {"study", "scale", "seeds", "seconds", "rows"}
    assert (found["study"], found["scale"], found["seeds"]) == ("ran-figure3", "smoke", [0])
    assert json.loads((folder / "ran-figure3.json").read_text()) == found
    assert (folder / "report.html").is_file()
    for row in found["rows"]:
        assert set(row) == ROW
        assert row["better"] in ("lower", "higher")
        assert row["paper"] is None or isinstance(row["paper"], float)
        assert row["holds"] in (True, False, None)
        assert row["ci"][0] <= row["ours"] <= row["ci"][1]
    done = len(steps)
    again = run_study("ran-figure3", data="digits", scale="smoke", out=folder, say=steps.append)
    assert again == found
    assert len(steps) == done


@pytest.mark.parametrize("name", ["ran-figure4", "ran-figure6"])
def test_every_other_study_has_rows_too(folder: Path, name: str) -> None:
    found = run_study(name, data="digits", scale="smoke", out=folder)
    assert found["rows"]
    assert any(row["holds"] is not None for row in found["rows"])


@pytest.mark.parametrize("study", studies(), ids=lambda study: study.name)
@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_of_every_study_is_well_formed(study: Any, scale: str) -> None:
    for data in study.data:
        plan = study.scale(data, scale)
        ids = [point.id for point in plan.points]
        assert len(set(ids)) == len(ids)
        assert {"dnn", "ran"} <= {point.mechanism for point in plan.points}
        for point in plan.points:
            mechanism_class(point.mechanism)().set_params(**point.params)._check_params()


def test_names_that_do_not_exist_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    for wrong in ({"name": "ran-figure9"}, {"data": "adult"}, {"scale": "huge"}):
        asked = {"name": "ran-figure3", "data": "digits", "scale": "smoke", **wrong}
        with pytest.raises(UsageError):
            run_study(**asked, out=tmp_path / "s")
    assert not (tmp_path / "s").exists()


def score(attack: str, metric: str, value: float, half: float = 0.01) -> dict[str, Any]:
    return {
        "attack": attack,
        "metric": metric,
        "value": value,
        "ci": [value - half, value + half],
        "primary": True,
        "better_for_owner": "higher",
    }


def point(mechanism: str, accuracy: float, error: float) -> dict[str, Any]:
    attacks = [score("inverse-mirror", "mse", error, 0.001), score("inverse-residual", "mse", error, 0.001)]
    return {
        "point": Point(mechanism).id,
        "mechanism": mechanism,
        "utility": [score("own classifier", "accuracy", accuracy)],
        "attacks": attacks,
        "worst": {"reconstruction": attacks[0]},
    }


@pytest.mark.parametrize(
    ("accuracy", "error", "holds"),
    [
        (0.99, 0.05, [True, True, True, True]),
        (0.97, 0.05, [True, False, True, True]),
        (0.90, 0.01, [False, False, False, False]),
    ],
)
def test_a_statement_holds_only_where_the_intervals_say_so(accuracy: float, error: float, holds: list[bool]) -> None:
    rows = ran.FIGURE3.rows("mnist", [point("dnn", 0.965, 0.02), point("ran", accuracy, error)])
    assert [row.holds for row in rows if row.holds is not None] == holds
