"""From a file with numbers for labels to a gate: fit, audit, page, card and release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from sfumato.auditing.effort import SMOKE
from sfumato.core.errors import UsageError
from sfumato.core.policy import policy_of
from sfumato.data import load
from sfumato.mechanisms import load_mechanism, mechanism_class, names
from sfumato.report import build_report, render_card
from sfumato.workflow import UNAUDITED, audit_run, fit_run, release_run, resolve
from sfumato.workflow.gate import gate_folder


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pay follows from a and b, age from c; three rows have no pay."""
    rng, n = np.random.default_rng(0), 900
    a, b, c = rng.random((3, n))
    pay = 20_000 + 30_000 * a + 10_000 * b + rng.normal(0, 2_000, n)
    age = 20 + 60 * c + rng.normal(0, 4, n)
    shown = ["N" if row < 3 else f"{value:.1f}" for row, value in enumerate(pay)]
    sex = rng.choice(["f", "m"], n)
    rows = [
        ",".join(map(str, one))
        for one in zip(a.round(4), b.round(4), c.round(4), shown, age.round(1), sex, strict=True)
    ]
    file = tmp_path_factory.mktemp("pay") / "people.csv"
    file.write_text("\n".join(["a,b,c,pay,age,sex", *rows]) + "\n")
    return file


DATA: dict[str, Any] = {"utility": ["pay", "sex"], "private": ["age"]}


@pytest.fixture(scope="module")
def said() -> list[str]:
    return []


@pytest.fixture(scope="module")
def run(people: Path, said: list[str]) -> Path:
    out = people.parent / "dnn"
    data = {"source": str(people), **DATA}
    fit_run(resolve("dnn", data, {"epochs": 40}, seed=0), out, warn=said.append)
    return out


@pytest.fixture(scope="module")
def scores(run: Path) -> dict[str, Any]:
    return audit_run(run, effort=SMOKE)


def test_what_is_left_out_is_said(run: Path, said: list[str]) -> None:
    assert any(line == "3 records have no number in pay, age and are left out" for line in said)


def test_the_mean_and_deviation_are_the_owners_and_stored_with_the_run(run: Path) -> None:
    scale = load_mechanism(run).schema_.numbers["pay"]
    assert scale.mean is not None and 38_000 < scale.mean < 42_000
    assert scale.deviation is not None and 8_000 < scale.deviation < 11_000


def test_utility_of_a_number_is_r2_beside_the_accuracy_of_a_class(scores: dict[str, Any]) -> None:
    found = {(s["target"], s["attack"], s["metric"]): s for s in scores["utility"]}
    own, fresh = found["pay", "own regression", "r2"], found["pay", "fresh regression", "r2"]
    assert own["value"] > 0.8 and fresh["value"] > 0.8 and fresh["control"] > 0.8
    assert own["baseline"] == 0.0 and own["better_for_owner"] == "higher" and own["primary"]
    assert found["pay", "own regression", "mae"]["better_for_owner"] == "lower"
    assert found["sex", "own classifier", "accuracy"]["primary"]
    assert not any(s["metric"] == "mean-accuracy" for s in scores["utility"])


def test_a_private_number_is_attacked_by_regression(scores: dict[str, Any]) -> None:
    worst = scores["worst"]["attribute:age"]
    assert worst["metric"] == "r2" and worst["control"] > 0.7 and abs(worst["baseline"]) < 0.1
    assert worst["leakage"] is not None and "age" not in scores["confusion"]
    assert {"by-pay", "by-sex"} <= {s["attack"] for s in scores["attacks"] if s["target"] == "age"}


def test_fairness_between_numbers_is_not_asked_and_the_audit_says_why(scores: dict[str, Any]) -> None:
    reasons = {one["attack"]: one["reason"] for one in scores["skipped"]}
    assert reasons["fairness of sex by age"] == "age is a number: groups and answers need classes"


def test_a_gate_limits_numbers_like_classes(run: Path, scores: dict[str, Any]) -> None:
    high = scores["worst"]["attribute:age"]["ci"][1]
    policy = policy_of([f"attribute:age={high + 0.01}", "attribute=100%"], ["r2:pay=0.5"])
    outcomes = {check.asked: check.passed for check in gate_folder(run, policy).checks}
    assert all(passed for asked, passed in outcomes.items() if not asked.startswith("useful")) and len(outcomes) > 2
    assert not gate_folder(run, policy_of([], ["r2=0.99"])).passed


def test_card_and_page_tell_of_r2(run: Path, scores: dict[str, Any]) -> None:
    card, page = render_card(run), build_report([run], run.parent / "report.html").read_text()
    assert "R²" in card and "age" in card
    assert "R²" in page and "mean guess" in page


def test_released_numbers_are_numbers_and_missing_where_they_are(run: Path, people: Path) -> None:
    release_run(run, str(people), people.parent / "released", labels=True, warrant=UNAUDITED)
    table = pq.read_table(people.parent / "released" / "release.parquet")
    assert table.num_rows == 900 and table.column("pay").null_count == 3
    data = load(people, **DATA)
    assert table.column("pay").to_numpy()[3:] == pytest.approx(data.numbers("pay"), abs=0.01)


@pytest.mark.parametrize(
    ("name", "verb", "label"),
    [("phase", "serve", "pay"), ("synth", "serve", "pay"), ("vfae", "hide", "age"), ("lmifr", "hide", "age")],
)
def test_a_mechanism_that_cannot_says_which_ones_can(name: str, verb: str, label: str, people: Path) -> None:
    data = load(people, **DATA)
    with pytest.raises(UsageError, match=rf"{name} cannot {verb} a number, and '{label}' is one: use .*ars") as refused:
        mechanism_class(name)().fit(data)
    assert "filter" in str(refused.value) and f"'{label}:class'" in str(refused.value)
    assert not [other for other in ("phase", "synth", "vfae") if f" {other}," in str(refused.value)]


def test_published_ars_refuses_a_private_number_and_names_who_hides_it(people: Path) -> None:
    with pytest.raises(UsageError, match="ars cannot hide a number, and 'age' is one: use filter"):
        mechanism_class("ars")(variant="published").fit(load(people, **DATA))


def test_every_name_says_whether_it_serves_numbers() -> None:
    able = {name for name in names() if mechanism_class(name)().serves_numbers}
    assert {"ran", "dnn", "filter", "ars", "vfae", "lmifr", "split", "none", "noisy", "gaussian"} <= able
    assert not {"phase", "synth"} & able
