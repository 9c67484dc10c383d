"""The pages of results are what the stored results make of them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from sfumato.core.errors import DataError
from sfumato.studies import studies

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def collect() -> ModuleType:
    return _loaded("collect")


def _loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "results" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_follow_from_the_stored_results(collect: ModuleType) -> None:
    for path, text in collect.pages().items():
        assert path.read_text() == text, f"{path.relative_to(ROOT)} is stale: run python docs/results/collect.py"


def test_words_of_the_paper_stand_only_above_its_own_claims(collect: ModuleType) -> None:
    result = {"study": "phase-front", "data": "mnist", "scale": "cpu", "seeds": [0], "seconds": 60, "claims": []}
    page = "\n".join(collect.section({**result, "about": "Ours.", "command": "c", "rows": []}))
    assert "“" not in page and "Ours." in page


def test_ends_of_an_interval_are_told_apart(collect: ModuleType) -> None:
    assert collect.interval({"ci": [0.96501, 0.96503], "exact": False}) == "0.96501 … 0.96503"
    assert collect.interval({"ci": None, "exact": False}) == ""
    assert collect.interval({"ci": None, "exact": True}) == "exact"
    assert collect.interval({"ci": [6.2946, None], "exact": False}) == "≥ 6.295"  # a bound has one end


def test_records_and_people_stand_beside_a_figure(collect: ModuleType) -> None:
    assert collect.count({"n": 1200, "people": 40}) == "1,200 (40)"
    assert collect.count({"n": 1200, "people": 1200}) == "1,200"


@pytest.fixture(scope="module")
def measure() -> ModuleType:
    return _loaded("measure")


def test_every_study_is_measured_on_every_set_of_its_paper(measure: ModuleType) -> None:
    pairs = {(study.name, data) for study, data in measure.wanted([])}
    assert {name for name, _ in pairs} == {study.name for study in studies()}
    assert ("ran-figure3", "fsdd") in pairs and ("ran-figure3", "digits") not in pairs
    assert ("synth-flaw", "digits") in pairs  # its own set


def test_a_study_that_fails_is_named_and_the_others_are_measured(
    measure: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(name: str, *, data: str, **_: object) -> None:
        if data == "svhn":
            raise DataError("svhn is not here.")

    kept: list[str] = []
    monkeypatch.setattr(measure, "run_study", run)
    monkeypatch.setattr(measure, "source", lambda: "abc")
    monkeypatch.setattr(measure.collect, "keep", lambda file: kept.append(file.parent.name))
    monkeypatch.setattr(measure.collect, "main", lambda _: None)
    assert measure.main(["synth-figure2"]) == 1
    assert kept == ["synth-mnist-cpu"]
    assert capsys.readouterr().err == "not measured: synth-figure2 on svhn: svhn is not here.\n"


def test_an_unknown_study_is_refused_before_anything_is_measured(
    measure: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert measure.main(["ran-figure33"]) == 2
    assert "did you mean 'ran-figure3'" in capsys.readouterr().err


def test_claim_that_a_test_shows_names_it(collect: ModuleType) -> None:
    said = collect.claim("phase-layers-turn")
    line = collect.claim_line(said, [])
    assert "**holds, shown by a test**" in line and f"`pytest {said.check}`" in line
    assert "not measured yet" not in line
