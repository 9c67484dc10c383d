"""The studies of `ars`: figures that follow from stored scores, checked by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.studies import ars, ars_columns, ars_labels
from sfumato.studies.ars_masks import binomial_tail
from sfumato.studies.verdicts import Asked


def score(attack: str, metric: str, value: float, **more: Any) -> dict[str, Any]:
    return {
        "attack": attack,
        "metric": metric,
        "value": value,
        "ci": [value, value],
        "better_for_owner": "higher",
        "primary": attack == "fresh classifier" and metric == "accuracy",
        "control": None,
        **more,
    }


def point(params: dict[str, Any], right: float, **errors: float) -> dict[str, Any]:
    attacks = [score(name.replace("_", "-"), "mse", value, control=0.012) for name, value in errors.items()]
    name = "-".join(str(value) for value in params.values())
    return {
        "point": name,
        "params": params,
        "attacks": attacks,
        "utility": [score("fresh classifier", "accuracy", right)],
    }


def with_errors(epsilon: float, **errors: list[float]) -> dict[str, Any]:
    """A published point with the error of each victim, by attack."""
    means = {name: sum(each) / len(each) for name, each in errors.items()}
    found = point({"variant": "published", "epsilon": epsilon}, 0.9, **means)
    return {**found, "each": {f"{name.replace('_', '-')}||mse": np.array(each) for name, each in errors.items()}}


def test_error_rises_for_the_papers_attacker_and_not_for_the_worst() -> None:
    none = with_errors(0.0, sdec_own_mask=[0.01, 0.02, 0.03], sdec_read_mask=[0.01, 0.01, 0.01])
    noise = with_errors(1.0, sdec_own_mask=[0.05, 0.06, 0.08], sdec_read_mask=[0.01, 0.01, 0.01])
    theirs, worst = ars._rises([noise, none])
    assert theirs.ours == pytest.approx((0.04 + 0.04 + 0.05) / 3)
    assert theirs.asked == Asked("ars-error-rises", "above", 0.0, "paper")
    assert (worst.ours, worst.asked) == (0.0, Asked("ars-error-rises", "above", 0.0, "adaptive"))


def test_multiple_of_the_error_without_noise_is_a_ratio_over_the_same_victims() -> None:
    none = with_errors(0.0, sdec=[0.01, 0.02, 0.03])
    noise = with_errors(1.0, sdec=[0.02, 0.04, 0.06])
    row = ars._times("twice", noise, none)
    assert row.ours == pytest.approx(2.0)
    assert row.ci == pytest.approx((2.0, 2.0)), "every victim's error doubles: nothing varies"
    assert row.to_json("cpu")["verdict"] is None, "no claim, no verdict"


def labelled(matrix: list[list[int]], people: int | None = None) -> dict[str, Any]:
    attacks = [score("probe-mlp", "accuracy", 0.5, target="Male", people=people)]
    return {"seed": 0, "confusion": {"Male": {"attack": "probe-mlp", "matrix": matrix}}, "attacks": attacks}


def test_share_of_predictions_that_equal_r_is_a_column_of_the_confusion_matrix() -> None:
    code = ars_labels.target(0, "Male", 2)
    matrix = [[10, 20], [30, 40]]  # truth × prediction: 40 are predicted as 0, 60 as 1
    share, (low, high) = ars_labels.equal_to_target(labelled(matrix), "Male")
    assert share == (0.4, 0.6)[code]
    wide = ars_labels.equal_to_target(labelled(matrix, people=10), "Male")[1]
    assert wide[0] < low < share < high < wide[1], "ten people are worth less than a hundred records"


def test_r_is_the_class_that_the_mechanism_draws() -> None:
    from sfumato import load_splits
    from sfumato.mechanisms.ars.mechanism import ARS

    splits = load_splits("digits", utility=["digit"], private=["ge5"], limit=300)
    mechanism = ARS(variant="published", epochs=1, seed=3).fit(splits.owner)
    assert mechanism.parties_[0].attributes["ge5"][1] == ars_labels.target(3, "ge5", 2)


def test_difference_of_shares_has_newcombes_interval() -> None:
    value, (low, high) = ars_labels.less((0.5, (0.47, 0.54)), (0.25, (0.22, 0.29)))
    assert value == 0.25
    assert (low, high) == pytest.approx((0.25 - 0.05, 0.25 + 0.05))  # 3-4-5: hypot(0.03, 0.04) on both sides


def test_f1_follows_from_accuracy_balanced_accuracy_and_share() -> None:
    # 75 of 100 are frequent; 70 of them and 15 of the others are right: TP 70, FP 10, FN 5
    utility = [
        score("fresh classifier", "accuracy", 0.85, baseline=0.75),
        score("fresh classifier", "balanced-accuracy", (70 / 75 + 15 / 25) / 2, baseline=0.5),
    ]
    assert ars_columns._f1(utility) == pytest.approx(2 * 70 / (2 * 70 + 10 + 5))


def test_chance_of_a_lucky_mask_is_what_the_paper_says() -> None:
    assert binomial_tail(256, 0.75) == pytest.approx(2.449e-16, rel=1e-3)
    assert binomial_tail(4, 0.75) == 5 / 16
    assert binomial_tail(10, 0.0) == 1.0
