"""The studies of `phase`: figures that follow from stored scores, checked by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.studies import phase
from sfumato.studies.phase_tables import table3, utility_and_privacy
from sfumato.studies.rows import Row


def score(attack: str, metric: str, each: list[float], **more: Any) -> dict[str, Any]:
    value = float(np.mean(each))
    usual = {"threat": "reconstruction", "better_for_owner": "higher", "baseline": 0.4, "primary": True}
    interval = [value - 0.01, value + 0.01]
    return {**usual, "attack": attack, "metric": metric, "value": value, "ci": interval, "each": each, **more}


def point(name: str, right: list[float], *attacks: dict[str, Any]) -> dict[str, Any]:
    utility = [score("own", "accuracy", right)]
    each = {f"{one['attack']}||{one['metric']}": np.array(one["each"]) for one in (*utility, *attacks)}
    mechanism = "phase" if name.startswith("phase") else "split"
    told = {"point": name, "part": "", "mechanism": mechanism, "params": {"d": 2}, "worst": {}}
    return {**told, "utility": utility, "attacks": list(attacks), "each": each}


def named(rows: list[Row], end: str) -> Row:
    return next(row for row in rows if row.name == f"phase-published-d-2: {end}")


def test_table_3_has_the_angle_and_the_papers() -> None:
    published = point("phase-published-d-2", [1.0, 1.0], score("key-angle", "angle", [0.7, 0.9], threat="key"))
    row = named(table3("cifar10", [published]), "angle")
    assert row.ours == pytest.approx(0.8)
    assert row.paper == 0.7884
    assert row.asked is not None and row.asked.claim == "phase-angle"


@pytest.mark.parametrize(("right", "settles"), [(0.8, True), (0.6, False)])
def test_original_that_errs_far_more_than_the_papers_settles_nothing(right: float, settles: bool) -> None:
    split = point("split", [1.0] * round(10 * right) + [0.0] * round(10 - 10 * right))
    published = point("phase-published-d-2", [1.0] * 5 + [0.0] * 5)
    row = named(utility_and_privacy("cifar10", [split, published]), "accuracy less that of split")
    assert row.ours == pytest.approx(0.5 - right)
    assert row.asked is not None and row.asked.bound == -0.0178
    assert (row.asked.unless == "") == settles


def test_several_messages_are_not_put_to_the_claim_about_one() -> None:
    split = point("split", [1.0, 1.0], score("inverse-residual", "l1", [0.1, 0.1]))
    attacks = [score("inverse-residual", "l1", [0.2, 0.4]), score("inverse-intersect", "l1", [0.05])]
    rows = utility_and_privacy("mnist", [split, point("phase-published-d-2", [1.0, 1.0], *attacks)])
    row = named(rows, "best attack on one message, over the baseline that hides most")
    assert row.ours == pytest.approx(3.0)
    assert row.asked is not None and row.asked.setting == "adaptive"
    assert named(rows, "best attack on several messages of a record").asked is None


def test_our_own_questions_are_no_claims_of_the_paper() -> None:
    own = {"phase-anonymity", "phase-keys", "phase-front"}
    assert {study.name for study in phase.STUDIES if not study.claims} == own


def test_discriminator_that_knows_the_input_exceeds_the_maximum_over_those_that_do_not() -> None:
    """§3.2, Strategy 2, with g and dec the identity and a, b standard normal: a' is distributed as a, so that Eq. 8
    is 0 for every D of a' alone, and −|g(I) − g(dec(a'))| is above it."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 200_000))
    turn = rng.uniform(0.0, 2.0 * np.pi, a.shape)
    fake = a * np.cos(turn) - b * np.sin(turn)
    for discriminator in (np.tanh, np.abs, np.cos):
        assert abs(discriminator(a).mean() - discriminator(fake).mean()) < 0.01
    assert 0.0 - (-np.abs(a - fake)).mean() > 0.5
