"""The studies of `filter`: figures that follow from stored scores, checked by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sfumato.auditing.fairness import PARITY
from sfumato.core.run_folder import EACH_RECORD, write_json, write_tensors
from sfumato.mechanisms import mechanism_class
from sfumato.studies import filter_adult, filter_digits, filter_faces, filter_users
from sfumato.studies.filter_base import apart, average, further, moved, named, paired, private, useful
from sfumato.studies.papers import paper
from sfumato.studies.verdicts import verdict
from sfumato.workflow import compare_users

RIGHT = {"good": [1.0, 1, 1, 1, 1, 1, 1, 0], "fair": [1.0, 1, 1, 1, 0, 0, 1, 0], "poor": [1.0, 0, 0, 1, 0, 0, 0, 0]}


def score(attack: str, target: str, right: list[float], metric: str = "accuracy") -> dict[str, Any]:
    value = float(np.mean(right))
    return {
        "attack": attack,
        "target": target,
        "metric": metric,
        "value": value,
        "ci": [value - 0.1, value + 0.2],
        "baseline": 0.5,
        "better_for_owner": "lower" if attack.startswith("probe") else "higher",
        "n": len(right),
        "people": len(right),
    }


def result(
    mechanism: str, hidden: dict[str, list[float]], served: dict[str, list[float]], **more: Any
) -> dict[str, Any]:
    """A point on which attacks read ``ge5`` and classifiers read the labels in ``served``, record by record."""
    attacks = [score(attack, "ge5", right) for attack, right in hidden.items()]
    utility = [score("own classifier", label, right) for label, right in served.items()]
    each = {f"{s['attack']}|{s['target']}|accuracy": r for s, r in zip(attacks, hidden.values(), strict=True)}
    each |= {f"own classifier|{label}|accuracy": right for label, right in served.items()}
    return {
        "mechanism": mechanism,
        "point": mechanism,
        "params": {"budget": 5.0, "divergence": "norm"},
        "attacks": attacks,
        "utility": utility,
        "each": {key: np.array(values) for key, values in each.items()},
        **more,
    }


RAW = result(
    "vae", {"probe-elu": RIGHT["good"], "probe-mlp": RIGHT["good"]}, {"odd": RIGHT["good"], "circle": RIGHT["good"]}
)
LINEAR = result(
    "filter-linear",
    {"probe-elu": RIGHT["poor"], "probe-mlp": RIGHT["fair"]},
    {"odd": RIGHT["good"], "circle": RIGHT["fair"]},
)


def test_the_papers_setting_is_its_classifier_and_the_adaptive_one_the_best_probe() -> None:
    assert private(LINEAR, "ge5", "paper")["value"] == 0.25
    assert private(LINEAR, "ge5", "adaptive")["value"] == 0.625


def test_differences_are_of_the_same_victims() -> None:
    row = paired("x", (LINEAR, useful(LINEAR, "circle")), (RAW, useful(RAW, "circle")), better="higher")
    assert row.ours == pytest.approx(5 / 8 - 7 / 8)
    assert row.ci is not None and row.ci[1] - row.ci[0] < 0.9  # both intervals added would be 1.2 wide


def test_circle_that_falls_more_than_odd_speaks_against_the_claim() -> None:
    (row,) = filter_digits._non_target([RAW, LINEAR])
    assert row.ours == pytest.approx((7 / 8 - 5 / 8) - 0.0)
    assert row.asked is not None and (row.asked.claim, row.asked.side, row.asked.bound) == (
        "filter-non-target",
        "below",
        0,
    )
    assert verdict(row.asked, (0.1, 0.4), "cpu") == "does not hold"


def test_a_fall_is_compared_with_another_fall_record_by_record() -> None:
    hidden = (RAW, private(RAW, "ge5", "paper")), (LINEAR, private(LINEAR, "ge5", "paper"))
    served = (RAW, useful(RAW, "odd")), (LINEAR, useful(LINEAR, "odd"))
    assert further("x", hidden, served, better="higher").ours == pytest.approx(5 / 8)


def test_figures_that_are_no_means_have_both_errors_in_their_difference() -> None:
    row = apart("x", score("probe-elu", "a", [1.0, 0]), score("probe-elu", "a", [1.0, 1]), better="lower")
    assert row.ours == -0.5
    assert row.ci == pytest.approx((-0.5 - (0.1**2 + 0.2**2) ** 0.5, -0.5 + (0.2**2 + 0.1**2) ** 0.5))


def test_an_interval_without_width_is_none() -> None:
    row = paired("x", (RAW, useful(RAW, "odd")), (LINEAR, useful(LINEAR, "odd")), better="higher")
    assert (row.ours, row.ci) == (0.0, None)


def test_table_1_is_put_to_the_papers_figures_alone() -> None:
    rows = filter_digits._table1_reached([RAW, {**LINEAR, "utility": [score("own classifier", "odd", [1.0] * 8)]}])
    assert [row.asked.setting for row in rows if row.asked] == ["paper", "adaptive"]
    assert {row.asked.bound for row in rows if row.asked} == {
        paper("filter").figure("Table 1", "emb-g-filter", "private")
    }
    assert (
        filter_digits._table1_reached([RAW, {**LINEAR, "utility": [score("own classifier", "odd", [0.0] * 8)]}]) == []
    )


@pytest.mark.parametrize("scale", ["smoke", "cpu", "full"])
def test_methods_of_table_2_have_equal_latents_epochs_and_nats(scale: str) -> None:
    points = {point.mechanism: point.params for point in filter_adult.points(scale)}
    made = {name: mechanism_class(name)(**points[name]) for name in ("vae", "vfae", "lmifr")}
    assert len({one.latent for one in made.values()}) == 1  # type: ignore[attr-defined]
    assert len({one.epochs for one in made.values()}) == 1  # type: ignore[attr-defined]
    assert made["lmifr"].capacity == filter_adult.CAPACITY  # type: ignore[attr-defined]
    assert all("latent" not in points[name] for name in ("filter", "filter-linear"))  # they have their autoencoder's


def test_comparable_is_what_the_paper_calls_so() -> None:
    assert filter_adult._gap("accuracy") == -0.029
    assert filter_adult._gap("auroc") == -0.03


def test_the_papers_budgets_are_run_in_the_unit_of_its_figures() -> None:
    (part,) = filter_digits.STUDIES[0].scale("mnist", "cpu").parts
    for kind in ("gaussian", "filter-linear", "filter"):
        mine = [p.params for p in part.points if p.mechanism == kind and p.params.get("divergence") == "norm"]
        assert [params["budget"] for params in mine] == [1.5, 3.0, 5.0]
    assert any(point.params.get("divergence") == "mahalanobis" for point in part.points)


def test_the_distortion_is_told_in_half_squared_norms(tmp_path: Path) -> None:
    write_json(tmp_path / "base.json", {"norm": 7.6})
    row = moved({"point": "filter-budget-300", "folder": str(tmp_path)})
    assert row is not None and (row.ours, row.ci) == (7.6, None)
    write_json(tmp_path / "base.json", {})
    assert moved({"point": "filter-budget-300", "folder": str(tmp_path)}) is None


def test_points_of_a_unit_come_in_the_order_of_their_budgets() -> None:
    five, three = LINEAR, {**LINEAR, "params": {"budget": 3.0, "divergence": "norm"}}
    nats = {**LINEAR, "params": {"budget": 300.0}}
    assert named([five, nats, three], "filter-linear") == [three, five]
    assert named([five, nats], "filter-linear", "kl") == [nats]


def test_confusions_within_circles_are_counted_among_the_wrong_digits() -> None:
    matrix = np.zeros((10, 10), dtype=int)
    matrix[0, 0], matrix[0, 6], matrix[0, 1], matrix[1, 2], matrix[1, 8] = 50, 20, 5, 10, 5
    found = {"confusion": {"digit": {"classes": [str(d) for d in range(10)], "matrix": matrix.tolist()}}, "point": "x"}
    row = filter_digits._within_circles(found)
    assert (row.ours, row.n) == (30 / 40, 40)


def test_both_kinds_of_error_have_their_own_rate() -> None:
    rows = filter_digits._errors({"point": "x", "confusion": {"ge5": {"matrix": [[30, 10], [5, 15]]}}})
    assert [row.ours for row in rows] == [0.25, 0.25]


def test_the_average_of_attributes_is_over_the_victims_and_its_majority_over_the_attributes() -> None:
    pair = [(LINEAR, private(LINEAR, "ge5", "paper")), (LINEAR, private(LINEAR, "ge5", "adaptive"))]
    row = average("x", pair, printed=None)
    assert row.ours == pytest.approx((0.25 + 0.625) / 2)
    above = filter_faces._above_guessing(row, "paper")
    assert above.ours == pytest.approx(row.ours - 0.5)
    assert above.asked is not None and above.asked.bound == 0.06


def test_a_flat_picture_has_no_sharpness_and_stripes_have() -> None:
    flat, stripes = np.full((1, 1, 4, 4), 0.3), np.tile([0.0, 1.0], (1, 1, 4, 2))
    assert filter_faces.sharpness(flat)[0] == 0.0
    assert filter_faces.sharpness(stripes)[0] == pytest.approx(0.5)


def test_only_the_papers_own_filter_is_put_to_its_claims_about_users() -> None:
    users = [
        {**result("x", {"probe-elu": RIGHT["fair"]}, {"odd": RIGHT["good"]}), "point": "user-1", "part": part}
        for part in ("linear", "nonlinear")
    ]
    asked = {row.name.split(",")[0]: row.asked for row in filter_users._table4("mnist", users)}
    assert asked["linear"] is not None and asked["nonlinear"] is None


def test_fairness_of_every_method_stands_beside_the_raw_latents_and_only_the_papers_filter_is_asked() -> None:
    def point(mechanism: str, gap: float, **more: Any) -> dict[str, Any]:
        said = {"target": "income", "group": "sex", "primary": True, "better_for_owner": "lower", **more}
        return {"mechanism": mechanism, "fairness": [{**said, "metric": PARITY, "value": gap, "ci": [gap, gap + 0.01]}]}

    points = [point("vae", 0.2), point("vfae", 0.15), point("filter-linear", 0.1), point("filter", 0.3, primary=False)]
    fair, linear = filter_adult._fairer(points)
    assert (fair.ours, fair.asked) == (pytest.approx(-0.05), None)
    assert linear.ours == pytest.approx(-0.1) and verdict(linear.asked, linear.ci, "cpu") == "holds"
    assert filter_adult._fairer([{"mechanism": "vae"}, points[2]]) == []  # an earlier audit has no gaps


def test_users_that_were_audited_are_compared_record_by_record(tmp_path: Path) -> None:
    right = {"ann": RIGHT["good"], "bob": RIGHT["fair"]}
    for name, values in right.items():
        folder = tmp_path / "users" / name
        folder.mkdir(parents=True)
        write_json(folder / "seconds.json", 1.0)
        write_json(folder / "scores.json", {"utility": [score("own classifier", "odd", values)]})
        write_tensors(folder / EACH_RECORD, {"own classifier|odd|accuracy": torch.tensor(values)})
    write_json(tmp_path / "users" / "users.json", [{"user": name} for name in right])
    ann, bob = compare_users("filter", "", tmp_path, tmp_path, {})
    row = paired("x", (ann, useful(ann, "odd")), (bob, useful(bob, "odd")), better="higher")
    assert row.ours == pytest.approx(2 / 8)
