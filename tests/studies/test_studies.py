"""Studies: a smoke run end to end, and statements that follow from the figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.errors import UsageError
from sfumato.mechanisms import mechanism_class
from sfumato.studies import SCALES, filter, ran, run_study, studies, synth
from sfumato.studies.base import Measurement, Scale, Study
from sfumato.testing import TINY
from sfumato.workflow import Point

ROW = {"name", "metric", "better", "paper", "ours", "ci", "holds"}


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("studies") / "family"


@pytest.fixture
def folder(family: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where studies of one family find each other's points; with next to no records and effort."""
    for study in ran.STUDIES:
        monkeypatch.setitem(study.__dict__, "scale", cheap(study, limit=150))
    return family


def cheap(study: Study, limit: int) -> Callable[[str, str], Scale]:
    """The study's own points with next to no records and effort."""
    real = study.scale

    def scale(data: str, name: str) -> Scale:
        whole = real(data, name)
        return replace(whole, effort=replace(TINY, threats=whole.effort.threats), limit=limit)

    return scale


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
    if isinstance(study, Measurement):
        assert study.data and study.name.startswith(study.family.split("-")[0])
        return
    for data in study.data:
        for part in study.scale(data, scale).parts:
            ids = [point.id for point in part.points]
            assert len(set(ids)) == len(ids)
            for point in part.points:
                mechanism_class(point.mechanism)().set_params(**point.params)._check_params()


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("filter-table1", 300),
        ("filter-figure3", 300),
        ("filter-figure9", 300),
        ("filter-front", 300),
        ("filter-table4", 2000),
    ],
)
def test_every_filter_study_runs_end_to_end(
    name: str, limit: int, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = next(study for study in filter.STUDIES if study.name == name)
    monkeypatch.setitem(study.__dict__, "scale", cheap(study, limit))
    found = run_study(name, data="digits", scale="smoke", out=tmp_path_factory.getbasetemp() / f"{study.family}-smoke")
    assert found["rows"]
    for row in found["rows"]:
        assert set(row) == ROW
        assert row["ci"][0] <= row["ours"] <= row["ci"][1]


def adult(mechanism: str, seed: int, sex: float, income: float) -> dict[str, Any]:
    attacks = [score("probe-elu", metric, sex - 0.1) for metric in ("accuracy", "auroc")]
    attacks += [score("probe-trees", metric, sex) for metric in ("accuracy", "auroc")]
    utility = [score("fresh classifier", metric, income) for metric in ("accuracy", "auroc")]
    found = {
        "attacks": [{**s, "target": "sex"} for s in attacks],
        "utility": [{**s, "target": "income"} for s in utility],
    }
    return {"mechanism": mechanism, "point": mechanism, "seed": seed, **found}


@pytest.mark.parametrize(
    ("sex", "income", "holds"), [(0.6, 0.85, [True] * 4), (0.68, 0.81, [True, False, False, True])]
)
def test_table_2_takes_the_best_probe_and_spreads_over_seeds(sex: float, income: float, holds: list[bool]) -> None:
    results = [adult("filter", seed, sex + 0.01 * seed, income) for seed in (0, 1)]
    rows = filter._table2("adult", results)
    assert [row.holds for row in rows] == holds
    assert rows[0].ours == pytest.approx(sex + 0.005)
    assert rows[0].ci[1] - rows[0].ours == pytest.approx(0.01 / 2**0.5)


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


def test_every_method_says_what_its_promise_is_worth_beside_its_students() -> None:
    results = [
        {
            "params": {"method": method},
            "guarantee": {"kind": kind},
            "utility": [score("student cnn", "accuracy", 0.9), score("student cnn", "auroc", 0.99)],
        }
        for method, kind in (("mixture", "dp"), ("noise-layer", "as-published"))
    ]
    rows = synth._methods("mnist", results)
    assert [(row.name, row.paper) for row in rows] == [
        ("mixture, guarantee dp: student cnn", None),
        ("noise-layer, guarantee as-published: student cnn", 0.9819),
    ]
