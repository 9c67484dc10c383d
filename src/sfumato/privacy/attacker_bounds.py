"""What a proven (ε, δ) leaves to an attacker who has to tell two neighbouring data sets apart.

Whoever rejects "the record is not there" with false-positive rate α is right at rate TPR when it is there. The
trade-off of a mechanism is the largest TPR at every α (Wasserman and Zhou 2010; Dong, Roth and Su 2022, "Gaussian
differential privacy"). Every pair (ε, δ) that holds bounds it in both directions of the test:

    TPR ≤ δ + e^ε·α                              (the definition of (ε, δ), applied to the rejection region)
    1 − α ≤ δ + e^ε·(1 − TPR)   ⟹   TPR ≤ 1 − e^−ε·(1 − δ − α)     (the definition, applied to the other region)

By hand, for ε = log 3, δ = 0, α = 0.1: the first gives 0.3, the second 1 − 0.9/3 = 0.7, so TPR ≤ 0.3.

A Gaussian mechanism with μ = sensitivity/σ is exactly as hard as telling N(0, 1) from N(μ, 1) (μ-GDP), for which

    TPR(α) = Φ(Φ⁻¹(α) + μ),        advantage = max(TPR − α) = 2Φ(μ/2) − 1.

By hand, for μ = 1, α = 0.01: Φ⁻¹(0.01) = −2.326, so TPR = Φ(−1.326) = 0.0924; advantage 2Φ(0.5) − 1 = 0.3829.

The advantage of a pair is max over α of the smaller bound less α, where both meet: α = (1 − δ)/(1 + e^ε), so that it is
(e^ε − 1 + 2δ)/(e^ε + 1) (Kairouz, Oh and Viswanath 2015). Of several pairs that hold at once the smallest bound counts,
and δ(0), the total variation, bounds the advantage by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from sfumato.core.errors import RuleBroken
from sfumato.core.guarantee import Guarantee
from sfumato.privacy.gaussian_mechanism import gaussian_delta
from sfumato.privacy.ledger import Ask, Plan, privacy_profile

ALARM_RATES = (0.01, 0.001)
"""The false-positive rates at which an attacker is judged."""
_STEPS = 200
"""Places at which the accountant's curve is read."""
_EXACT, _ENVELOPE, _PAIR = (
    "exact: all noise is Gaussian, on all records",
    "the smallest μ whose curve covers the accountant's at every δ from the promised one upwards",
    "no μ: only (ε, δ) is known of this mechanism",
)


@dataclass(frozen=True)
class AttackerBounds:
    """The most that any attacker gets, by the promise alone: no measurement is in it.

    ``mu`` is that of Gaussian differential privacy, None where there is none, and ``by`` says where it comes from.
    """

    mu: float | None
    by: str
    advantage: float
    tpr: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def bounds_of(promise: Guarantee) -> AttackerBounds | None:
    """What a dp promise leaves to an attacker; None for any other guarantee."""
    if promise.kind != "dp":
        return None
    if promise.epsilon is None or promise.delta is None or promise.event is None:
        raise RuleBroken("a dp guarantee without its figures.")
    event = promise.event
    if "composed" in event:
        plan = tuple(Ask(**{name: ask[name] for name in Ask.__dataclass_fields__}) for ask in event["composed"])
        return of_plan(plan, promise.epsilon, promise.delta)
    if event.get("mechanism") == "gaussian" and event.get("releases") == 1:
        return of_gaussian(float(event["sensitivity"]) / float(event["sigma"]))
    return of_pairs([(promise.epsilon, promise.delta)])


def of_gaussian(mu: float, by: str = _EXACT) -> AttackerBounds:
    """Of μ-GDP."""
    from scipy.special import ndtr, ndtri

    tpr = {_rate(alarm): float(ndtr(ndtri(alarm) + mu)) for alarm in ALARM_RATES}
    return AttackerBounds(mu, by, float(2.0 * ndtr(mu / 2.0) - 1.0), tpr)


def of_pairs(pairs: Sequence[tuple[float, float]], mu: float | None = None, by: str = _PAIR) -> AttackerBounds:
    """Of pairs (ε, δ) that all hold at once."""
    tpr = {_rate(alarm): min(_power(alarm, *pair) for pair in pairs) for alarm in ALARM_RATES}
    advantage = min((math.exp(e) - 1.0 + 2.0 * d) / (math.exp(e) + 1.0) if e < 700.0 else 1.0 for e, d in pairs)
    return AttackerBounds(mu, by, min(1.0, advantage), tpr)


def of_plan(plan: Plan, epsilon: float, delta: float) -> AttackerBounds:
    """Of composed queries: exact where they are Gaussian sums over all records, else by the accountant's curve δ(ε)."""
    if all(ask.rate == 1.0 and ask.kind == "sum" for ask in plan):
        return of_gaussian(math.sqrt(sum(ask.count / ask.noise**2 for ask in plan)))
    epsilons = [epsilon * step / _STEPS for step in range(_STEPS + 1)]
    pairs = list(zip(epsilons, privacy_profile(plan, epsilons), strict=True))
    return of_pairs([*pairs, (epsilon, delta)], enveloping_mu(pairs), _ENVELOPE)


def enveloping_mu(pairs: Sequence[tuple[float, float]]) -> float:
    """The smallest μ with δ(εᵢ) ≤ δ_μ(εᵢ₊₁) for pairs in the order of ε: as both curves fall, δ_μ is then above δ
    everywhere from the first ε to the last."""
    steps = [(after, delta) for (_, delta), (after, _) in pairwise(pairs)]

    def covers(mu: float) -> bool:
        return all(gaussian_delta(epsilon, 1.0 / mu, 1.0) >= delta for epsilon, delta in steps)

    low, high = 0.0, 1.0
    while not covers(high):
        low, high = high, 2.0 * high
    while high - low > 1e-4 * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if covers(middle) else (middle, high)
    return high


def _power(alarm: float, epsilon: float, delta: float) -> float:
    """The largest TPR at a false-positive rate that (ε, δ) allows."""
    first = delta + math.exp(min(epsilon, 700.0)) * alarm
    return min(1.0, first, 1.0 - math.exp(-epsilon) * (1.0 - delta - alarm))


def _rate(alarm: float) -> str:
    return f"{alarm:g}"
