"""What (ε, δ) leaves to an attacker: by hand, by exact mechanisms, and by the accountant's own curve."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy.stats import norm

from sfumato.core.guarantee import Covers, Guarantee, empirical
from sfumato.privacy.attacker_bounds import bounds_of, enveloping_mu, of_gaussian, of_pairs, of_plan
from sfumato.privacy.gaussian_mechanism import gaussian_delta
from sfumato.privacy.ledger import Ask, calibrated, pld_epsilon, privacy_profile


def test_one_pair_by_hand() -> None:
    """ε = log 3, δ = 0: at α = 0.01 the first bound gives 0.03; advantage (3 − 1)/(3 + 1)."""
    found = of_pairs([(math.log(3.0), 0.0)])
    assert found.tpr == pytest.approx({"0.01": 0.03, "0.001": 0.003})
    assert found.advantage == pytest.approx(0.5) and found.mu is None


def test_randomised_response_reaches_the_bound_of_its_pair() -> None:
    """It tells 0 from 1 with TPR = e^ε/(1 + e^ε) at FPR = 1/(1 + e^ε), and is the worst mechanism of its ε."""
    for epsilon in (0.1, 1.0, 3.0):
        right = math.exp(epsilon) / (1.0 + math.exp(epsilon))
        assert of_pairs([(epsilon, 0.0)]).advantage == pytest.approx(right - (1.0 - right))


def test_gaussian_mechanism_by_hand_and_never_above_its_own_pairs() -> None:
    found = of_gaussian(1.0)
    assert found.tpr["0.01"] == pytest.approx(0.0924, abs=1e-4) and found.advantage == pytest.approx(0.3829, abs=1e-4)
    for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
        pair = of_pairs([(epsilon, gaussian_delta(epsilon, 1.0, 1.0))])
        assert found.advantage <= pair.advantage + 1e-12
        assert all(found.tpr[rate] <= pair.tpr[rate] + 1e-12 for rate in found.tpr)


def test_gaussian_sums_have_the_mu_that_gives_back_their_delta() -> None:
    plan = calibrated([Ask("a", "one", 1.0), Ask("a", "two", 3.0, count=4)], 2.0, 1e-5)
    found = of_plan(plan, 2.0, 1e-5)
    assert found.mu is not None and gaussian_delta(2.0, 1.0 / found.mu, 1.0) == pytest.approx(1e-5, rel=1e-3)
    assert found.advantage == pytest.approx(2.0 * norm.cdf(found.mu / 2.0) - 1.0)


def test_a_sampled_plan_gets_a_mu_whose_curve_is_nowhere_below_the_accountants() -> None:
    plan = (Ask("a", "steps", 1.0, count=50, rate=0.05, noise=0.9),)
    epsilon = pld_epsilon(plan, 1e-5)
    found = of_plan(plan, epsilon, 1e-5)
    assert found.mu is not None
    at = [epsilon * share for share in (0.0, 0.11, 0.37, 0.62, 0.93)]
    assert all(
        gaussian_delta(one, 1.0 / found.mu, 1.0) >= delta
        for one, delta in zip(at, privacy_profile(plan, at), strict=True)
    )
    assert all(found.tpr[rate] <= of_gaussian(found.mu).tpr[rate] + 1e-9 for rate in found.tpr)
    assert enveloping_mu([(0.0, gaussian_delta(0.0, 2.0, 1.0)), (1.0, 0.0)]) >= 0.0


def test_bounds_follow_from_a_proof_alone() -> None:
    event = {"mechanism": "gaussian", "releases": 1, "sensitivity": 2.0, "sigma": 4.0}
    proven = Guarantee("dp", "s", 1.0, 1e-5, "r", event, covers=Covers())
    found = bounds_of(proven)
    assert found is not None and found.mu == 0.5
    other = bounds_of(replace(proven, event={"mechanism": "something else"}))
    assert other is not None and other.mu is None and other.by.startswith("no μ")
    assert bounds_of(empirical("measured")) is None
    assert bounds_of(Guarantee("as-published", "a paper's", 1.0, 1e-5)) is None
