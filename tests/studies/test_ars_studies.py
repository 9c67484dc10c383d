"""The studies of `ars`: figures that follow from stored scores, checked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.studies import ars, ars_columns
from sfumato.studies.ars_masks import binomial_tail


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


def claims(*results: dict[str, Any]) -> dict[str, tuple[float, bool | None]]:
    return {row.name: (pytest.approx(row.ours), row.holds) for row in ars._claims(results)}  # type: ignore[misc]


CLEAN = point({"way": "gaussian", "epsilon": 0.0}, 0.96, inverse_residual=0.01)
NOISE = point({"way": "gaussian", "epsilon": 0.5}, 0.93, inverse_residual=0.014)
PUBLISHED = point(
    {"variant": "published", "epsilon": 1.0},
    0.93,
    sdec=0.07,
    sdec_own_mask=0.04,
    sdec_any_mask=0.02,
    sdec_known_mask=0.011,
)


def test_claims_are_multiples_of_the_best_attack_on_clean_latents() -> None:
    hardened = point({"variant": "hardened", "epsilon": 1.0}, 0.93, inverse_residual=0.019, inverse_mirror=0.03)
    found = claims(CLEAN, NOISE, PUBLISHED, hardened)
    assert found["published-1.0: the paper's attacker, × no defence"] == (4.0, True)
    assert found["published-1.0: sdec-known-mask, × no defence"] == (1.1, None)
    assert found["hardened-1.0: worst attacker, × no defence (1.6 asked, 2 is the goal)"] == (1.9, True)
    assert found["hardened-1.0: worst attacker, × no defence, the goal"] == (1.9, False)
    assert found["hardened-1.0: worst attacker, × the best simple way"] == (0.019 / 0.014, True)


def test_point_that_serves_too_badly_makes_no_claim() -> None:
    useless = point({"variant": "hardened", "epsilon": 9.0}, 0.5, inverse_residual=0.06)
    assert not any("hardened" in name for name in claims(CLEAN, PUBLISHED, useless))


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
