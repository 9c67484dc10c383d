"""The audit of synthetic records: students, members and canaries, in the same form as every other audit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_methods import register

from sfumato.attacks.membership.synthetic_records import NearestSynthetic
from sfumato.attacks.reidentification.candidates import ReidentifyByQuery
from sfumato.auditing import Audit, Controls, Effort, audit
from sfumato.auditing.synthetic_audit import ALIGNED
from sfumato.cli.output import claim_line, front_table, score_table, spent_line
from sfumato.core.dataset import Splits
from sfumato.core.errors import UsageError
from sfumato.core.run_folder import read_json
from sfumato.core.threats import CLAIM
from sfumato.data import split
from sfumato.mechanisms import mechanism_class
from sfumato.mechanisms.synth.mechanism import Synth
from sfumato.report import build_report
from sfumato.testing import TINY
from sfumato.workflow.compare import Point, compare, front, sweep
from sfumato.workflow.demo import summary


@pytest.fixture(scope="module")
def patched() -> pytest.MonkeyPatch:
    with pytest.MonkeyPatch.context() as monkeypatch:
        register(monkeypatch)
        yield monkeypatch


@pytest.fixture(scope="module")
def few(parity: Splits) -> Splits:
    """300 of the digits."""
    return split(parity.owner.take(slice(None, None, 3)), seed=0)


@pytest.fixture(scope="module")
def fitted_synth(few: Splits, patched: pytest.MonkeyPatch) -> Synth:
    return Synth(method="tiny", epsilon=3.0).fit(few.owner)


@pytest.fixture(scope="module")
def audited(fitted_synth: Synth, few: Splits) -> Audit:
    return audit(fitted_synth, few, effort=TINY)


def test_an_audit_has_students_members_canaries_and_fidelity(audited: Audit) -> None:
    assert {score.attack for score in audited.utility} == {"student cnn", "student logistic"}
    assert audited.accuracy.attack == "student cnn"
    questions = {"singling-out", "linkability", "inference", "copies"}
    assert questions < set(audited.worst) and set(audited.worst) - questions == {"membership", "differential-privacy"}
    assert {score.threat for score in audited.information} == {"fidelity"}
    assert audited.skipped[0] == (ALIGNED, "a synthetic record belongs to no victim")
    later = [name for name, _ in audited.skipped[1:] if not name.startswith("member-shadow")]
    assert later == ["fairness of odd by ge5"], "few victims are not compared"
    assert audited.worst["differential-privacy"].value < 3.0
    json.dumps(audited.to_json(), allow_nan=False)


def test_every_score_has_an_interval_a_baseline_and_a_control(audited: Audit) -> None:
    for score in (*audited.utility, *audited.attacks, *audited.information):
        assert score.ci[0] <= score.value <= score.ci[1]
        assert score.baseline is not None
        assert score.control is not None or score.metric in ("balanced-accuracy", "auroc")


def test_synth_is_fitted_again_for_shadow_releases_where_that_is_affordable(
    fitted_synth: Synth, few: Splits, audited: Audit
) -> None:
    effort = replace(TINY, threats=("membership",), shadow_passes=100, shadow_releases=2, students=())
    found = {score.attack: score for score in audit(fitted_synth, few, effort=effort).attacks if score.primary}
    for name in ("member-shadow-ratio", "member-shadow-learnt"):
        assert found[name].control is not None and found[name].control > 0.5
        assert dict(audited.skipped)[name] == ("needs shadow releases, which cost too much at this effort")


def test_raw_records_as_a_control_are_recognised(audited: Audit) -> None:
    nearest = next(s for s in audited.attacks if (s.attack, s.metric) == ("member-nearest", "advantage"))
    assert nearest.control == 1.0


def test_an_audit_can_be_repeated_but_for_the_noise_of_the_run_itself(
    fitted_synth: Synth, few: Splits, audited: Audit
) -> None:
    again = audit(fitted_synth, few, effort=TINY)
    figures = [
        [
            (s.attack, s.metric, s.value, s.control)
            for s in (*one.utility, *one.attacks, *one.information)
            if s.threat != CLAIM
        ]
        for one in (again, audited)
    ]
    assert figures[0] == figures[1]


def test_shared_controls_are_measured_once(fitted_synth: Synth, few: Splits) -> None:
    controls, said = Controls(), []
    controls.get(NearestSynthetic().identity, lambda: {"advantage": 0.75})
    result = audit(fitted_synth, few, effort=TINY, attacks=[NearestSynthetic()], controls=controls, say=said.append)
    assert result.worst["membership"].control == 0.75
    assert said[0] == "synth: student cnn" and "synth: canaries" not in said


def test_the_gallery_shows_samples_beside_the_nearest_real_records(audited: Audit, few: Splits) -> None:
    assert set(audited.gallery) == {"synthetic", "nearest"}
    owners = {record.tobytes() for record in few.owner.x}
    assert all(record.tobytes() in owners for record in audited.gallery["nearest"])
    assert audited.gallery["synthetic"].shape == audited.gallery["nearest"].shape


def test_attacks_that_need_a_victim_are_not_run(fitted_synth: Synth, few: Splits) -> None:
    result = audit(fitted_synth, few, effort=TINY, attacks=[ReidentifyByQuery(), NearestSynthetic()])
    assert ("reid-query", "a synthetic record belongs to no victim") in result.skipped
    assert {score.attack for score in result.attacks} == {"member-nearest"}


def test_a_method_without_a_proof_says_why_there_are_no_canaries(few: Splits, patched: pytest.MonkeyPatch) -> None:
    result = audit(Synth(method="doubtful").fit(few.owner), few, effort=TINY)
    reasons = dict(result.skipped)
    assert "past the counter" in reasons["canaries"]
    assert "differential-privacy" not in result.worst


def test_records_without_labels_can_be_audited(few: Splits, patched: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = audit(Synth(method="tiny", labels="none").fit(few.owner), few, effort=TINY)
    assert result.utility == ()
    assert {"member-nearest-class", "member-loss"} <= {attack for attack, _ in result.skipped}
    assert result.features["classes"] == ["synthetic"]
    point = {"point": "synth", **result.to_json()}
    assert front([point]) == ["synth"]
    assert front_table([point], ["synth"]).row_count == 1


def test_students_are_chosen_by_name_and_for_synthetic_records_only(fitted_synth: Synth, few: Splits) -> None:
    chosen = replace(TINY, students=("logistic", "sklearn.tree.DecisionTreeClassifier"))
    result = audit(fitted_synth, few, effort=chosen, attacks=[])
    assert [s.attack for s in result.utility if s.metric == "accuracy"] == [
        "student logistic",
        "student DecisionTreeClassifier",
    ]
    assert result.accuracy.attack == "student logistic"
    with pytest.raises(UsageError, match="did you mean 'logistic'"):
        audit(fitted_synth, few, effort=replace(TINY, students=("logistc",)))
    plain = mechanism_class("none")(epochs=1).fit(few.owner)
    with pytest.raises(UsageError, match="leave out --student"):
        audit(plain, few, effort=chosen)


def test_effort_survives_json() -> None:
    chosen = replace(TINY, students=("logistic",))
    assert Effort(**json.loads(json.dumps(chosen.__dict__))) == chosen


def test_the_claim_is_printed_beside_the_lower_bound(audited: Audit) -> None:
    scores = audited.to_json()
    line = claim_line(scores)
    assert line.startswith("claimed ε = 3.000 (δ = 1e-05); empirical lower bound ε ≥ ")
    assert "canary" in line and "REFUTED" not in line
    scores["guarantee"]["epsilon"] = 0.01
    assert line.partition(";")[0] != claim_line(scores).partition(";")[0] and "REFUTED" in claim_line(scores)
    del scores["worst"]["differential-privacy"]
    assert claim_line(scores) == ""
    assert score_table(audited.to_json()).row_count > 10


def test_synthetic_records_stand_beside_others_in_comparison_demo_and_report(
    patched: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = {"source": "digits", "utility": ["odd", "circle"], "private": ["ge5"], "limit": 300}
    points = (Point("none", {"epochs": 1}), Point("synth", {"method": "tiny", "epsilon": 3.0}))
    quick = replace(TINY, students=("logistic",))
    results = compare(points[1:], data, tmp_path / "synth", effort=quick)
    others = compare(points[:1], data, tmp_path / "none", effort=TINY)
    page = build_report([tmp_path / "synth", tmp_path / "none"], tmp_path / "report.html")
    text = page.read_text()
    assert "Synthetic records" in text and "Claimed, and shown by canaries" in text
    lines = summary([*results, *others], page)
    assert len(lines) == 3 and "synthetic records: membership advantage" in lines[0]
    assert front([*results, *others]) == ["none"]
    card = (tmp_path / "synth" / "points" / "synth-epsilon-3" / "README.md").read_text()
    assert "## Budget" in card and "| model | sums | 1 | 1 |" in card


def test_a_sweep_of_epsilon_fits_every_point_afresh(patched: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = {"source": "digits", "utility": ["odd"], "limit": 300}
    quick = replace(TINY, students=("logistic",))
    results = sweep("synth", data, "epsilon", [1.0, 4.0], tmp_path / "s", params={"method": "tiny"}, effort=quick)
    assert front(results)
    spent = [read_json(tmp_path / "s" / "points" / r["point"] / "budget.json")["spent"]["epsilon"] for r in results]
    assert spent == pytest.approx([1.0, 4.0], abs=1e-3)
    text = build_report([tmp_path / "s"], tmp_path / "s" / "report.html").read_text()
    assert "Trade-off over ε" in text


def test_a_table_is_audited_by_boosted_trees_and_marginals(patched: pytest.MonkeyPatch) -> None:
    from sfumato.core.dataset import Dataset
    from sfumato.core.schema import Column, Schema

    rng = np.random.default_rng(0)
    columns = (Column("a", "numeric"), Column("b", "categorical", categories=("x", "y")))
    schema = Schema("table", (3,), columns=columns, utility={"y": ("no", "yes")}, declared=True)

    def part(name: str) -> Dataset:
        y = rng.integers(0, 2, 300)
        b = np.eye(2)[(y + (rng.random(300) < 0.2)) % 2]
        x = np.concatenate([rng.random((300, 1)), b], axis=1).astype(np.float32)
        return Dataset(x, schema, {"y": y}, name=name)

    splits = Splits(part("owner"), part("attacker"), part("victim"))
    result = audit(Synth(method="tiny", epsilon=5.0).fit(splits.owner), splits, effort=TINY)
    assert result.accuracy.attack == "student boosted-trees"
    assert {"column-shapes", "pair-trends", "k-marginal"} <= {score.metric for score in result.information}
    assert result.worst["differential-privacy"].value < 5.0


def test_a_sweep_says_what_its_points_spent_together() -> None:
    points = [{"guarantee": {"kind": "dp", "epsilon": epsilon, "delta": 1e-5}} for epsilon in (1.0, 2.5)]
    assert "ε = 3.5, δ = 2e-05" in spent_line(points)
    assert spent_line(points[:1]) == spent_line([{"guarantee": {"kind": "empirical", "epsilon": None}}] * 3) == ""
