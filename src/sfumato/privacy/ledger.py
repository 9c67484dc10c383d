"""Where the budget goes: every question to the private records, planned before the first is asked.

All methods add Gaussian noise to sums over records, so a run is a list of Gaussian mechanisms, some on Poisson samples.
Neighbours differ in one record that is there or not. ``dp_accounting`` composes the list by privacy loss
distributions (PLD); Rényi divergences (RDP) and, without sampling, the closed form stand beside it.

Randomised response is another kind of question: it answers once per record, so how many records there are is out, and
its neighbours differ in one record that is there or blank (a blank one's response is uniform). For the sums both
relations are the same, a blank record adds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from sfumato.core.errors import RuleBroken, UsageError
from sfumato.privacy.gaussian_mechanism import gaussian_epsilon, gaussian_sigma

RELATION = "add or remove one record"
BLANKED = "one record is there or blank; how many there are is public"
"""The relation of a plan with a randomised response."""
_STEP = 1e-4
"""Grid of the privacy loss; its error is on the safe side and far below 1e-3."""
_LARGEST = 1e7
_ORDERS = (*range(2, 64), 80, 96, 128, 256, 512, 1024)
"""Whole Rényi orders: the series for broken ones does not always converge."""


@dataclass(frozen=True)
class Ask:
    """A question that a method is going to ask ``count`` times.

    ``share`` is its part of the budget among all questions (of Σ 1/σ²). ``rate`` < 1 draws a Poisson sample of the
    records each time. ``noise`` is the noise multiplier σ/sensitivity, 0 until ``calibrated``.

    A ``response`` is k-ary randomised response with ``size`` = k, asked once: ``share`` is its part of ε, and ``noise``
    the chance that a record's code is drawn at random instead.
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
            raise RuleBroken(f"'{self.name}': share {self.share}, count {self.count} or rate {self.rate} is wrong.")
        if self.kind == "response" and not (self.count == 1 and self.rate == 1.0 and self.size >= 2):
            raise RuleBroken(f"'{self.name}': a response is asked once, of all records, with 2 codes or more.")


Plan = tuple[Ask, ...]


def calibrated(asks: Sequence[Ask], epsilon: float, delta: float) -> Plan:
    """The asks with the least noise that keeps (ε, δ) over all of them, in the proportions of their shares.

    A response gets the noise of its share of ε as a pure guarantee; the sums get what the accountant leaves.
    """
    check_target(epsilon, delta)
    total = sum(ask.share for ask in asks)
    names = [ask.name for ask in asks]
    if not asks or len(set(names)) < len(names):
        raise RuleBroken("a plan needs asks, each with a name of its own.")

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
        if rdp_epsilon(at(scale), delta) > 4.0 * epsilon + 1.0:  # far off, where PLD would take minutes
            return True
        return pld_epsilon(at(scale), delta, step=min(1e-3, 1e-3 * epsilon)) > epsilon

    low, high = 0.0, gaussian_sigma(epsilon, delta, 1.0)
    while too_little(high):
        low, high = high, 2.0 * high
        if high > _LARGEST:
            raise UsageError(f"(ε, δ) = ({epsilon:g}, {delta:g}) cannot be met by this plan: raise ε or δ.")
    for _ in range(18):
        middle = (low + high) / 2 if low else high / 2
        low, high = (middle, high) if too_little(middle) else (low, middle)
        if low and high / low < 1.0 + 1e-3:
            break
    return at(high)


def response_noise(epsilon: float, size: int) -> float:
    """The chance η of a random code with which k-ary randomised response is ε-DP for the code: η = k/(e^ε + k − 1).

    A code stays with probability 1 − η + η/k and becomes any other with η/k each; their ratio is e^ε.
    """
    return size / (math.expm1(epsilon) + size)


def check_target(epsilon: float, delta: float) -> None:
    """Raise ``UsageError`` unless 0 < ε < ∞ and 0 < δ < 1."""
    if not (math.isfinite(epsilon) and epsilon > 0.0):
        raise UsageError(f"synth: epsilon must be above 0, got {epsilon:g}.")
    if not 0.0 < delta < 1.0:
        raise UsageError(f"synth: delta must lie between 0 and 1, got {delta:g}.")


def pld_epsilon(plan: Sequence[Ask], delta: float, *, step: float = _STEP) -> float:
    """ε of the whole list at δ by privacy loss distributions; a coarser grid is faster and gives more, never less."""
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(neighboring_relation=_relation(plan), value_discretization_interval=step)
    accountant.compose(_event(plan))
    return float(accountant.get_epsilon(delta))


def rdp_epsilon(plan: Sequence[Ask], delta: float) -> float:
    """ε of the whole list at δ by Rényi divergences (the moments accountant): an upper bound, looser than PLD."""
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(_ORDERS, neighboring_relation=_relation(plan))
    accountant.compose(_event(plan))
    return float(accountant.get_epsilon(delta))


def closed_epsilon(plan: Sequence[Ask], delta: float) -> float | None:
    """ε in closed form where all are sums over all records: their 1/σ² add up to that of one; None otherwise."""
    if any(ask.rate < 1.0 or ask.kind == "response" for ask in plan):
        return None
    return gaussian_epsilon(1.0 / math.sqrt(sum(ask.count / ask.noise**2 for ask in plan)), delta, 1.0)


def _event(plan: Sequence[Ask]) -> Any:
    import dp_accounting as dp

    whole = [ask for ask in plan if ask.rate == 1.0 and ask.kind == "sum"]
    events = []
    if whole:  # exact, and one distribution instead of hundreds
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
    """The frozen plan of a run, and what has been asked of it so far."""

    def __init__(self, plan: Plan, epsilon: float, delta: float, asked: Sequence[int] | None = None) -> None:
        self.plan, self.epsilon, self.delta = plan, epsilon, delta
        self.asked = list(asked) if asked is not None else [0] * len(plan)
        self.bypassed: str | None = None
        """Why the records were opened without noise, if they were: then no ε is proven."""

    def ask(self, name: str) -> Ask:
        """The next question; one that the plan does not hold, or not as often, breaks the run."""
        for place, ask in enumerate(self.plan):
            if ask.name == name:
                if self.asked[place] >= ask.count:
                    raise RuleBroken(f"'{name}' is planned {ask.count} times and was asked once more.")
                self.asked[place] += 1
                return ask
        raise RuleBroken(f"'{name}' is not in the plan: every touch of the records has to be.")

    @property
    def complete(self) -> bool:
        """Whether every planned question was asked."""
        return all(done == ask.count for done, ask in zip(self.asked, self.plan, strict=True))

    def to_json(self) -> dict[str, Any]:
        """The stored ledger ``budget.json``: target, certificate by three accountants, and each part alone."""
        return {
            "relation": BLANKED if any(ask.kind == "response" for ask in self.plan) else RELATION,
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
                {
                    **asdict(ask),
                    "asked": done,
                    "epsilon_alone": pld_epsilon((ask,), self.delta),
                }
                for ask, done in zip(self.plan, self.asked, strict=True)
            ],
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Ledger:
        plan = tuple(Ask(**{field.name: event[field.name] for field in fields(Ask)}) for event in value["events"])
        target = value["target"]
        ledger = cls(plan, target["epsilon"], target["delta"], [event["asked"] for event in value["events"]])
        ledger.bypassed = value["bypassed"]
        return ledger
