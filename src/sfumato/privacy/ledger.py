"""The privacy budget: every query to the private records is planned before the first one is asked.

All methods add Gaussian noise to sums over records, so a run is a list of Gaussian mechanisms, some on Poisson samples.
Neighbouring data sets differ in the presence of one record. ``dp_accounting`` composes the list by privacy loss
distributions (PLD); Rényi divergences (RDP) and, without sampling, the closed form serve as cross-checks.

Randomised response is another kind of query. It answers once per record, so the number of records is revealed, and its
neighbouring data sets differ in one record that is present or blank (the response of a blank one is uniform). For sums
the two relations are equivalent, because a blank record adds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import Any, Literal

from sfumato.core.errors import RuleBroken, UsageError
from sfumato.privacy.gaussian_mechanism import gaussian_epsilon, gaussian_sigma

RELATION = "add or remove one record"
PERSON = "add or remove one person with all their records"
BLANKED = "one record is there or blank; how many there are is public"
"""The neighbouring relation of a plan with randomised response."""
_STEP = 1e-4
"""Discretisation of the privacy loss. Its error overestimates ε, by far less than 1e-3."""
_RELATIVE_STEP = 5e-6
"""The same for large ε, in units of ε by Rényi divergences: the distribution has as many entries as ε has steps."""
_LARGEST = 1e7
_ORDERS = (*range(2, 64), 80, 96, 128, 256, 512, 1024)
"""Integer Rényi orders; for fractional orders the series does not always converge."""


@dataclass(frozen=True)
class Ask:
    """A query that a method is going to ask ``count`` times.

    ``share`` is its part of the budget (of Σ 1/σ²) relative to the other queries. With ``rate`` < 1 each answer uses a
    Poisson sample of the records. ``noise`` is the noise multiplier σ/sensitivity, 0 until ``calibrated``.

    A ``response`` is k-ary randomised response with ``size`` = k, asked once. Then ``share`` is its part of ε, and
    ``noise`` the probability that a record's code is replaced by a random one.
    """

    part: str
    name: str
    share: float
    count: int = 1
    rate: float = 1.0
    noise: float = 0.0
    kind: Literal["sum", "response"] = "sum"
    size: int = 0

    def __post_init__(self) -> None:
        if not (self.share > 0.0 and self.count >= 1 and 0.0 < self.rate <= 1.0):
            raise RuleBroken(
                f"'{self.name}': share > 0, count ≥ 1 and 0 < rate ≤ 1 must hold, "
                f"got {self.share}, {self.count} and {self.rate}."
            )
        if self.kind == "response" and not (self.count == 1 and self.rate == 1.0 and self.size >= 2):
            raise RuleBroken(f"'{self.name}': a response must be asked once, of all records, with 2 codes or more.")


Plan = tuple[Ask, ...]


def calibrated(asks: Sequence[Ask], epsilon: float, delta: float) -> Plan:
    """Return the queries with the least noise that meets (ε, δ) over all of them, in proportion to their shares.

    A response gets the noise for its share of ε as a pure guarantee; the sums get the rest, by the accountant.
    """
    check_target(epsilon, delta)
    total = sum(ask.share for ask in asks)
    names = [ask.name for ask in asks]
    if not asks or len(set(names)) < len(names):
        raise RuleBroken("a plan needs at least one query, and their names must be distinct.")

    def at(scale: float) -> Plan:
        return tuple(
            replace(
                ask,
                noise=response_noise(epsilon * ask.share / total, ask.size)
                if ask.kind == "response"
                else scale * ask.rate * math.sqrt(ask.count * total / ask.share),
            )
            for ask in asks
        )

    if all(ask.rate == 1.0 and ask.kind == "sum" for ask in asks):
        return at(gaussian_sigma(epsilon, delta, 1.0))

    def too_little(scale: float) -> bool:
        if rdp_epsilon(at(scale), delta) > 4.0 * epsilon + 1.0:  # far off, and PLD would take minutes there
            return True
        return pld_epsilon(at(scale), delta, step=min(1e-3, 1e-3 * epsilon)) > epsilon

    low, high = 0.0, gaussian_sigma(epsilon, delta, 1.0)
    while too_little(high):
        low, high = high, 2.0 * high
        if high > _LARGEST:
            raise UsageError(f"this plan cannot meet (ε, δ) = ({epsilon:g}, {delta:g}): raise ε or δ.")
    for _ in range(18):
        middle = (low + high) / 2 if low else high / 2
        low, high = (middle, high) if too_little(middle) else (low, middle)
        if low and high / low < 1.0 + 1e-3:
            break
    return at(high)


def response_noise(epsilon: float, size: int) -> float:
    """Return the probability η of a random code that makes k-ary randomised response ε-DP: η = k/(e^ε + k − 1).

    A code stays with probability 1 − η + η/k and becomes each other one with probability η/k; the ratio is e^ε.
    """
    return size / (math.expm1(epsilon) + size)


def check_target(epsilon: float, delta: float) -> None:
    """Raise ``UsageError`` unless 0 < ε < ∞ and 0 < δ < 1."""
    if not (math.isfinite(epsilon) and epsilon > 0.0):
        raise UsageError(f"synth: epsilon must be above 0, got {epsilon:g}.")
    if not 0.0 < delta < 1.0:
        raise UsageError(f"synth: delta must lie between 0 and 1, got {delta:g}.")


def pld_epsilon(plan: Sequence[Ask], delta: float, *, step: float | None = None) -> float:
    """Return ε of the plan at δ by privacy loss distributions. A coarser step is faster and never gives a lower ε.

    Infinite where δ is below what the distributions' ends hold, about 1e-15.
    """
    if step is None:
        step = max(_STEP, _RELATIVE_STEP * rdp_epsilon(plan, delta))
    return _pld_epsilon(tuple(plan), delta, step)


@lru_cache(maxsize=64)
def _pld_epsilon(plan: Plan, delta: float, step: float) -> float:
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(neighboring_relation=_relation(plan), value_discretization_interval=step)
    accountant.compose(_event(plan))
    return float(accountant.get_epsilon(delta))


def privacy_profile(plan: Sequence[Ask], epsilons: Sequence[float]) -> list[float]:
    """Return δ of the plan at each ε by privacy loss distributions; never below the true one."""
    from dp_accounting.pld import PLDAccountant

    step = max(_STEP, _RELATIVE_STEP * max(epsilons))
    accountant = PLDAccountant(neighboring_relation=_relation(plan), value_discretization_interval=step)
    accountant.compose(_event(plan))
    return [float(accountant.get_delta(epsilon)) for epsilon in epsilons]


def rdp_epsilon(plan: Sequence[Ask], delta: float) -> float:
    """Return ε of the plan at δ by Rényi divergences (the moments accountant), an upper bound looser than PLD."""
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(_ORDERS, neighboring_relation=_relation(plan))
    accountant.compose(_event(plan))
    return float(accountant.get_epsilon(delta))


def closed_epsilon(plan: Sequence[Ask], delta: float) -> float | None:
    """Return ε in closed form if all queries are sums over all records (their 1/σ² add up), else None."""
    if any(ask.rate < 1.0 or ask.kind == "response" for ask in plan):
        return None
    return gaussian_epsilon(1.0 / math.sqrt(sum(ask.count / ask.noise**2 for ask in plan)), delta, 1.0)


def _alone(ask: Ask, delta: float) -> float:
    """ε of one query: in closed form where there is one, which takes no time."""
    found = closed_epsilon((ask,), delta)
    return pld_epsilon((ask,), delta) if found is None else found


def _event(plan: Sequence[Ask]) -> Any:
    import dp_accounting as dp

    whole = [ask for ask in plan if ask.rate == 1.0 and ask.kind == "sum"]
    events = []
    if whole:  # exact, and one distribution instead of hundreds to compose
        events.append(dp.GaussianDpEvent(1.0 / math.sqrt(sum(ask.count / ask.noise**2 for ask in whole))))
    for ask in plan:
        if ask.kind == "response":
            events.append(dp.RandomizedResponseDpEvent(ask.noise, ask.size))
        elif ask.rate < 1.0:
            sampled = dp.PoissonSampledDpEvent(ask.rate, dp.GaussianDpEvent(ask.noise))
            events.append(dp.SelfComposedDpEvent(sampled, ask.count))
    return dp.ComposedDpEvent(events)


def _relation(plan: Sequence[Ask]) -> Any:
    from dp_accounting import NeighboringRelation

    blanked = any(ask.kind == "response" for ask in plan)
    return NeighboringRelation.REPLACE_SPECIAL if blanked else NeighboringRelation.ADD_OR_REMOVE_ONE


class Ledger:
    """The fixed plan of a run, and how much of it has been asked so far; ``people`` says that persons come and go, not
    records."""

    def __init__(
        self, plan: Plan, epsilon: float, delta: float, asked: Sequence[int] | None = None, *, people: bool = False
    ) -> None:
        self.plan, self.epsilon, self.delta, self.people = plan, epsilon, delta, people
        self.asked = list(asked) if asked is not None else [0] * len(plan)
        self.bypassed: str | None = None
        """Why the records were read without noise, if they were. Then no ε is proven."""

    def ask(self, name: str) -> Ask:
        """Record one more query and return it. A query that is not planned, or not that often, raises."""
        for place, ask in enumerate(self.plan):
            if ask.name == name:
                if self.asked[place] >= ask.count:
                    raise RuleBroken(f"'{name}' is planned {ask.count} times but was asked once more.")
                self.asked[place] += 1
                return ask
        raise RuleBroken(f"'{name}' is not in the plan: every query to the records must be planned.")

    @property
    def complete(self) -> bool:
        """Whether every planned query has been asked."""
        return all(done == ask.count for done, ask in zip(self.asked, self.plan, strict=True))

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``budget.json``: the target, ε by three accountants, and each query on its own."""
        blanked = any(ask.kind == "response" for ask in self.plan)
        return {
            "relation": BLANKED if blanked else PERSON if self.people else RELATION,
            "target": {"epsilon": self.epsilon, "delta": self.delta},
            "spent": {
                "epsilon": pld_epsilon(self.plan, self.delta),
                "epsilon_rdp": rdp_epsilon(self.plan, self.delta),
                "epsilon_closed_form": closed_epsilon(self.plan, self.delta),
                "delta": self.delta,
            },
            "state": "complete" if self.complete else "spending",
            "bypassed": self.bypassed,
            "events": [
                {**asdict(ask), "asked": done, "epsilon_alone": _alone(ask, self.delta)}
                for ask, done in zip(self.plan, self.asked, strict=True)
            ],
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Ledger:
        plan = tuple(Ask(**{field.name: event[field.name] for field in fields(Ask)}) for event in value["events"])
        target = value["target"]
        asked, people = [event["asked"] for event in value["events"]], value["relation"] == PERSON
        ledger = cls(plan, target["epsilon"], target["delta"], asked, people=people)
        ledger.bypassed = value["bypassed"]
        return ledger
