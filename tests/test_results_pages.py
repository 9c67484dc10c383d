"""The pages of results are what the stored results make of them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def collect() -> ModuleType:
    spec = importlib.util.spec_from_file_location("collect", ROOT / "docs" / "results" / "collect.py")
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


def test_records_and_people_stand_beside_a_figure(collect: ModuleType) -> None:
    assert collect.count({"n": 1200, "people": 40}) == "1,200 (40)"
    assert collect.count({"n": 1200, "people": 1200}) == "1,200"
