"""Gates: the unfavourable end counts, what was not measured does not pass, and the documents say the same."""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from sfumato.core.errors import DataError, UsageError
from sfumato.core.guarantee import Covers, Guarantee, empirical
from sfumato.core.policy import Policy, policy_of
from sfumato.core.score import Score
from sfumato.workflow.gate import Gate, GatedFolders, audited_folders, gate_folder
from sfumato.workflow.gate_documents import statement, write_junit

PROVEN = Guarantee("dp", "s", 2.0, 1e-5, "add or remove a person", {"kind": "gaussian"}, covers=Covers(unit="person"))


def score(threat: str, metric: str, value: float, ci: tuple[float, float], **more: Any) -> Any:
    better = "higher" if metric in ("accuracy", "mse") else "lower"
    return Score("a", threat, metric, better, value, ci, 0.0, 1.0, 100, 1.0, primary=True, **more).to_json()  # type: ignore[arg-type]


def audited(folder: Path, promise: Guarantee = PROVEN, **more: Any) -> Path:
    """A folder whose audit found leakage 12 % [8, 16] of sex, 40 % [30, 50] of age and errors of 0.05 [0.04, 0.06]."""
    folder.mkdir(parents=True, exist_ok=True)
    worst = {
        "attribute:sex": score(
            "attribute", "advantage", 0.1, (0.05, 0.15), target="sex", leakage=0.12, leakage_ci=(0.08, 0.16)
        ),
        "attribute:age": score(
            "attribute", "advantage", 0.3, (0.2, 0.4), target="age", leakage=0.4, leakage_ci=(0.3, 0.5)
        ),
        "reconstruction": score("reconstruction", "mse", 0.05, (0.04, 0.06)),
    }
    utility = [
        score("utility", "accuracy", 0.80, (0.75, 0.85), target="income"),
        score("utility", "accuracy", 0.90, (0.88, 0.92), target="income"),
    ]
    skipped = [{"attack": "member-shadows", "reason": "costs too much"}]
    found = {"worst": worst, "utility": utility, "skipped": skipped, "guarantee": promise.to_json(), **more}
    (folder / "scores.json").write_text(json.dumps(found))
    return folder


def outcomes(found: Gate) -> dict[str, str]:
    """What became of each limit of the policy."""
    return {check.asked: check.outcome for check in found.checks if not check.asked.startswith("useful")}


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [("attribute:sex=16%", "passed"), ("attribute:sex=13%", "failed"), ("attribute:sex=0.15", "passed")],
)
def test_the_upper_end_of_the_interval_counts_against_a_leak(tmp_path: Path, limit: str, outcome: str) -> None:
    assert list(outcomes(gate_folder(audited(tmp_path), policy_of([limit]))).values()) == [outcome]


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [
        ("accuracy=0.88", "passed"),
        ("accuracy=0.89", "failed"),
        ("reconstruction=0.04", "passed"),
        ("reconstruction=0.05", "failed"),
    ],
)
def test_the_lower_end_counts_where_more_is_wanted_and_the_best_reader_serves(
    tmp_path: Path, limit: str, outcome: str
) -> None:
    assert list(outcomes(gate_folder(audited(tmp_path), policy_of(least=[limit]))).values()) == [outcome]


def test_a_limit_without_a_label_holds_for_every_label(tmp_path: Path) -> None:
    found = gate_folder(audited(tmp_path), policy_of(["attribute=20%"]))
    assert outcomes(found) == {"max attribute:sex = 20%": "passed", "max attribute:age = 20%": "failed"}
    assert not found.passed


@pytest.mark.parametrize("limit", ["membership=10%", "reconstruction=10%", "attribute:job=10%"])
def test_what_was_not_measured_does_not_pass(tmp_path: Path, limit: str) -> None:
    found = gate_folder(audited(tmp_path), policy_of([limit]))
    assert set(outcomes(found).values()) == {"not-shown"} and not found.passed
    assert found.checks[0].because


def test_the_worst_group_counts(tmp_path: Path) -> None:
    groups = [
        {"column": "sex", "value": name, "n": 50, "people": 50, "leakage": leak, "leakage_ci": [leak - 0.1, leak + 0.1]}
        for name, leak in (("f", 0.3), ("m", 0.1))
    ]
    run = audited(tmp_path, exposure={"attribute:sex": {"groups": groups}})
    assert gate_folder(run, policy_of(groups=["attribute=41%"])).passed
    assert not gate_folder(run, policy_of(groups=["attribute=39%"])).passed
    assert outcomes(gate_folder(run, policy_of(groups=["reconstruction=39%"]))) == {
        "max-group reconstruction = 39%": "not-shown"
    }


@pytest.mark.parametrize(
    ("promise", "policy", "passed"),
    [
        (PROVEN, Policy(require="dp", epsilon=2.0, delta=1e-5, unit="person"), True),
        (PROVEN, Policy(require="dp", epsilon=1.9), False),
        (PROVEN, Policy(require="anonymity"), False),
        (empirical("measured"), Policy(require="proven"), False),
        (Guarantee("as-published", "not proven", 1.0, 1e-5), Policy(require="dp", epsilon=3.0), False),
        (
            Guarantee("dp", "s", 2.0, 1e-5, "r", {"kind": "g"}, covers=Covers()),
            Policy(require="dp", unit="person"),
            False,
        ),
    ],
)
def test_only_a_proof_of_the_right_kind_and_unit_meets_a_required_guarantee(
    tmp_path: Path, promise: Guarantee, policy: Policy, passed: bool
) -> None:
    assert gate_folder(audited(tmp_path, promise), policy).passed is passed


def test_a_policy_past_its_review_date_passes_nothing(tmp_path: Path) -> None:
    policy = Policy(policy_of(["attribute:sex=50%"]).thresholds, review=datetime.date(2027, 1, 1))
    assert gate_folder(audited(tmp_path), policy, today=datetime.date(2027, 1, 1)).passed
    assert not gate_folder(audited(tmp_path), policy, today=datetime.date(2027, 1, 2)).passed


def test_a_policy_that_asks_for_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="asks for nothing"):
        gate_folder(audited(tmp_path), Policy())


def test_folders_without_an_audit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no audit"):
        audited_folders(tmp_path)
    (tmp_path / "config.toml").touch()
    with pytest.raises(DataError, match="has not been audited"):
        audited_folders(tmp_path)


def test_junit_and_statement_say_what_the_gate_says(tmp_path: Path) -> None:
    policy = policy_of(["attribute=20%"], ["accuracy=0.5"])
    run = audited(tmp_path / "run")
    found = gate_folder(run, policy)
    write_junit(tmp_path / "gate.xml", GatedFolders((found,)))
    suite = ElementTree.parse(tmp_path / "gate.xml").getroot()[0]
    assert {case.get("name"): len(case) == 0 for case in suite} == {c.asked: c.passed for c in found.checks}
    told = statement(GatedFolders((found,)), policy)
    (subject,) = told["subject"]
    assert subject["digest"]["sha256"] == hashlib.sha256((run / "scores.json").read_bytes()).hexdigest()
    assert told["predicate"]["result"] == "FAILED"
    assert told["predicate"]["failedTests"] == ["max attribute:age = 20%"]
    (configuration,) = told["predicate"]["configuration"]
    content = base64.b64decode(configuration["content"])
    assert hashlib.sha256(content).hexdigest() == configuration["digest"]["sha256"]
    assert Policy.from_json(json.loads(content)) == policy


def test_a_share_of_people_is_limited_by_the_upper_end(tmp_path: Path) -> None:
    above = {"threshold": 0.5, "share": 0.02, "ci": [0.01, 0.06], "people": 90}
    run = audited(tmp_path, exposure={"attribute:sex": {"groups": [], "share_above": above}})
    assert gate_folder(run, policy_of(shares=["attribute=7%"])).passed
    found = gate_folder(run, policy_of(shares=["attribute:sex=5%"]))
    assert outcomes(found) == {"max-share attribute:sex = 5%": "failed"}
    assert found.checks[0].because == "2% of people leak more than 50%"


def test_an_error_of_a_number_counts_by_its_upper_end_and_the_best_reader(tmp_path: Path) -> None:
    errors = [
        {**score("utility", "mae", value, (value - 5.0, value + 5.0), target="pay"), "better_for_owner": "lower"}
        for value in (90.0, 60.0)
    ]
    run = audited(tmp_path, utility=errors)
    assert outcomes(gate_folder(run, policy_of(["mae=65"]))) == {"max mae:pay = 65": "passed"}
    assert outcomes(gate_folder(run, policy_of(["mae:pay=64"]))) == {"max mae:pay = 64": "failed"}


def test_a_limit_below_what_the_served_label_tells_is_said_to_be_out_of_reach(tmp_path: Path) -> None:
    floor = score("attribute", "accuracy", 0.7, (0.6, 0.8), target="sex", leakage=0.5, leakage_ci=(0.3, 0.6))
    run = audited(tmp_path, attacks=[{**floor, "follows": "income"}])
    (check,) = (one for one in gate_folder(run, policy_of(["attribute:sex=10%"])).checks if "sex" in one.asked)
    assert "OUT OF REACH: income tells 30% or more of it by itself" in check.because
    (check,) = (one for one in gate_folder(run, policy_of(["attribute:sex=35%"])).checks if "sex" in one.asked)
    assert "OUT OF REACH" not in check.because


def test_figures_beside_a_dp_promise_count_as_others_may_see_them_and_never_in_its_favour(tmp_path: Path) -> None:
    worst = {"membership": score("membership", "advantage", 0.123, (0.0501, 0.1501))}
    run = audited(tmp_path, worst=worst)
    assert outcomes(gate_folder(run, policy_of(["membership=0.155"]))) == {"max membership = 0.155": "failed"}
    assert outcomes(gate_folder(run, policy_of(["membership=0.16"]))) == {"max membership = 0.16": "passed"}
    measured = audited(tmp_path / "measured", empirical("measured"), worst=worst)
    assert outcomes(gate_folder(measured, policy_of(["membership=0.155"]))) == {"max membership = 0.155": "passed"}
