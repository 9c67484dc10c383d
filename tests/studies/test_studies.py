"""Studies: a smoke run end to end, and statements that follow from the figures."""

from __future__ import annotations

import io
import json
import wave
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from sfumato.core.errors import UsageError
from sfumato.core.run_folder import read_json
from sfumato.data import entry
from sfumato.mechanisms import mechanism_class
from sfumato.mechanisms.filter.latent_mechanism import LatentMechanism
from sfumato.studies import SCALES, filter_digits, filter_users, ran, run_study, studies, synth_ours
from sfumato.studies.base import Measurement, Scale, Study
from sfumato.studies.rows import Row
from sfumato.studies.verdicts import OPEN
from sfumato.testing import TINY

ROW = {
    "name",
    "metric",
    "better",
    "paper",
    "ours",
    "ci",
    "holds",
    "verdict",
    "claim",
    "setting",
    "asked",
    "n",
    "people",
}
ROW |= {"majority", "seeds", "exact"}


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
        assert row["holds"] is None, "nothing is settled at smoke scale"
        assert row["verdict"] in (OPEN, None)
        assert row["ci"] is None or row["ci"][0] <= row["ours"] <= row["ci"][1]
    done = len(steps)
    again = run_study("ran-figure3", data="digits", scale="smoke", out=folder, say=steps.append)
    assert again == found
    assert len(steps) == done


@pytest.mark.parametrize("name", ["ran-figure4", "ran-figure5", "ran-figure6"])
def test_every_other_study_has_rows_too(folder: Path, name: str) -> None:
    found = run_study(name, data="digits", scale="smoke", out=folder)
    assert found["rows"]
    assert any(row["claim"] is not None for row in found["rows"])


def image(rng: np.random.Generator) -> dict[str, bytes]:
    kept = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (70, 90, 3), dtype=np.uint8)).save(kept, format="PNG")
    return {"bytes": kept.getvalue()}


def sound(rng: np.random.Generator) -> dict[str, bytes]:
    kept = io.BytesIO()
    with wave.open(kept, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(rng.integers(-9000, 9000, 2000, dtype=np.int16).tobytes())
    return {"bytes": kept.getvalue()}


@pytest.mark.parametrize("name", ["imagenet", "ubisound"])
def test_papers_data_that_are_not_public_run_as_soon_as_they_are_there(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On made-up records of the same shape."""
    rng = np.random.default_rng(0)
    (tmp_path / "data" / name).mkdir(parents=True)
    for part, rows in (("train", 60), ("test", 30)):
        cells = [image(rng) if name == "imagenet" else sound(rng) for _ in range(rows)]
        labels = [row % 3 if name == "imagenet" else ("dog", "door", "rain")[row % 3] for row in range(rows)]
        table = pa.table({entry(name).x: cells, entry(name).utility[0]: labels})
        pq.write_table(table, tmp_path / "data" / name / f"{part}.parquet")
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path / "data"))
    plan = cheap(ran.FIGURE5, limit=90)(name, "smoke")
    two = tuple(point for point in plan.parts[0].points if point.mechanism in ("dnn", "ran"))[:2]
    effort = (
        replace(plan.effort, threats=()) if name == "imagenet" else plan.effort
    )  # attacks on large pictures are slow
    few = replace(plan, parts=(replace(plan.parts[0], points=two),), effort=effort)
    monkeypatch.setitem(ran.FIGURE5.__dict__, "scale", lambda *_: few)
    found = run_study("ran-figure5", data=name, scale="smoke", out=tmp_path / "out")
    assert found["rows"] and (tmp_path / "out" / "ran-figure5.png").is_file()
    ran_folder = next((tmp_path / "out").glob("release/points/ran-*"))
    asked = read_json(ran_folder / "mechanism.json")["params"]["architecture"]
    assert asked == ("vgg16" if name == "imagenet" else "auto")


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
    study = next(study for study in (*filter_digits.STUDIES, *filter_users.STUDIES) if study.name == name)
    monkeypatch.setitem(study.__dict__, "scale", cheap(study, limit))
    monkeypatch.setattr(LatentMechanism, "_probe", lambda *_: None)  # the base of so few records keeps next to nothing
    found = run_study(name, data="digits", scale="smoke", out=tmp_path_factory.getbasetemp() / f"{study.family}-smoke")
    assert found["rows"]
    for row in found["rows"]:
        assert set(row) == ROW
        assert row["ci"] is None or row["ci"][0] <= row["ours"] <= row["ci"][1]


def test_limit_replaces_the_scales_and_stands_in_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int | None] = []

    def measure(*, limit: int | None, **_: Any) -> list[Row]:
        asked.append(limit)
        return [Row("x", "rate", "lower", None, 0.5)]

    monkeypatch.setitem(synth_ours.CANARIES.__dict__, "run", measure)
    monkeypatch.chdir(tmp_path)
    own = run_study("synth-canaries", data="digits", scale="smoke")
    given = run_study("synth-canaries", data="digits", scale="smoke", limit=400)
    whole = run_study("synth-canaries", data="digits", scale="cpu")
    assert asked == [2000, 400, None] == [one["limit"] for one in (own, given, whole)]
    assert own["command"] == "sfumato reproduce synth-canaries --data digits --scale smoke --limit 2000"
    assert given["command"].endswith("--scale smoke --limit 400")
    assert whole["command"].endswith("--scale cpu")
    assert (tmp_path / "runs" / "synth-canaries-digits-smoke-400" / "synth-canaries.json").is_file()


def test_folder_of_another_measurement_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(synth_ours.CANARIES.__dict__, "run", lambda **_: [])
    run_study("synth-canaries", data="digits", scale="smoke", out=tmp_path)
    with pytest.raises(UsageError, match="another measurement"):
        run_study("synth-canaries", data="digits", scale="smoke", limit=400, out=tmp_path)


def test_limit_is_refused_where_a_study_does_not_choose_records(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="leave out --limit"):
        run_study("synth-file", scale="smoke", limit=400, out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_names_that_do_not_exist_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    for wrong in ({"name": "ran-figure9"}, {"data": "adult"}, {"scale": "huge"}):
        asked = {"name": "ran-figure3", "data": "digits", "scale": "smoke", **wrong}
        with pytest.raises(UsageError):
            run_study(**asked, out=tmp_path / "s")
    assert not (tmp_path / "s").exists()
