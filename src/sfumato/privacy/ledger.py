"""Where the budget goes: every question to the private records, planned before the first is asked.

All methods add Gaussian noise to sums over records, so a run is a list of Gaussian mechanisms, some on Poisson samples.
Neighbours differ in one record that is there or not. ``dp_accounting`` composes the list by privacy loss
distributions (PLD); Rényi divergences (RDP) and, without sampling, the closed form stand beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sfumato.core.errors import RuleBroken, UsageError
from sfumato.privacy.gaussian import gaussian_epsilon, gaussian_sigma

RELATION = "add or remove one record"
_STEP = 1e-4
"""Grid of the privacy loss; its error is on the safe side and far below 1e-3."""
_LARGEST = 1e7


@dataclass(frozen=True)
class Ask:
    """A question that a method is going to ask ``count`` times.

    ``share`` is its part of the budget among all questions (of Σ 1/σ²). ``rate`` < 1 draws a Poisson sample of the
    records each time. ``noise`` is the noise multiplier σ/sensitivity, 0 until ``calibrated``.
    """

    part: str
    name: str
    share: float
    count: int = 1
    rate: float = 1.0
    noise: float = 0.0

    def __post_init__(self) -> None:
        if not (self.share > 0.0 and self.count >= 1 and 0.0 < self.rate <= 1.0):
            raise RuleBroken(f"'{self.name}': share {self.share}, count {self.count} or rate {self.rate} is wrong.")


Plan = tuple[Ask, ...]


def calibrated(asks: Sequence[Ask], epsilon: float, delta: float) -> Plan:
    """The asks with the least noise that keeps (ε, δ) over all of them, in the proportions of their shares."""
    check_target(epsilon, delta)
    total = sum(ask.share for ask in asks)
    names = [ask.name for ask in asks]
    if not asks or len(set(names)) < len(names):
        raise RuleBroken("a plan needs asks, each with a name of its own.")

    def at(scale: float) -> Plan:
        return tuple(replace(ask, noise=scale * ask.rate * math.sqrt(ask.count * total / ask.share)) for ask in asks)

    if all(ask.rate == 1.0 for ask in asks):
        return at(gaussian_sigma(epsilon, delta, 1.0))
    low, high = 0.0, gaussian_sigma(epsilon, delta, 1.0)
    while pld_epsilon(at(high), delta) > epsilon:
        low, high = high, 2.0 * high
        if high > _LARGEST:
            raise UsageError(f"(ε, δ) = ({epsilon:g}, {delta:g}) cannot be met by this plan: raise ε or δ.")
    for _ in range(18):
        middle = (low + high) / 2 if low else high / 2
        if pld_epsilon(at(middle), delta) > epsilon:
            low = middle
        else:
            high = middle
        if low and high / low < 1.0 + 1e-3:
            break
    return at(high)


def check_target(epsilon: float, delta: float) -> None:
    """Raise ``UsageError`` unless 0 < ε < ∞ and 0 < δ < 1."""
    if not (math.isfinite(epsilon) and epsilon > 0.0):
        raise UsageError(f"synth: epsilon must be above 0, got {epsilon:g}.")
    if not 0.0 < delta < 1.0:
        raise UsageError(f"synth: delta must lie between 0 and 1, got {delta:g}.")


def pld_epsilon(plan: Sequence[Ask], delta: float) -> float:
    """ε of the whole list at δ by privacy loss distributions."""
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(value_discretization_interval=_STEP)
    accountant.compose(_event(plan))
    return float(accountant.get_epsilon(delta))


def rdp_epsilon(plan: Sequence[Ask], delta: float) -> float:
    """ε of the whole list at δ by Rényi divergences (the moments accountant): an upper bound, looser than PLD."""
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant()
    accountant.compose(_event(plan))
    return float(accountant.get_epsilon(delta))


def closed_epsilon(plan: Sequence[Ask], delta: float) -> float | None:
    """ε in closed form where no question samples: Gaussians compose to one with 1/σ² = Σ 1/σᵢ²; None otherwise."""
    if any(ask.rate < 1.0 for ask in plan):
        return None
    return gaussian_epsilon(1.0 / math.sqrt(sum(ask.count / ask.noise**2 for ask in plan)), delta, 1.0)


def _event(plan: Sequence[Ask]) -> Any:
    import dp_accounting as dp

    whole = [ask for ask in plan if ask.rate == 1.0]
    events = []
    if whole:  # exact, and one distribution instead of hundreds
        events.append(dp.GaussianDpEvent(1.0 / math.sqrt(sum(ask.count / ask.noise**2 for ask in whole))))
    for ask in plan:
        if ask.rate < 1.0:
            sampled = dp.PoissonSampledDpEvent(ask.rate, dp.GaussianDpEvent(ask.noise))
            events.append(dp.SelfComposedDpEvent(sampled, ask.count))
    return dp.ComposedDpEvent(events)


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
            "relation": RELATION,
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
        plan = tuple(
            Ask(**{key: event[key] for key in ("part", "name", "share", "count", "rate", "noise")})
            for event in value["events"]
        )
        target = value["target"]
        ledger = cls(plan, target["epsilon"], target["delta"], [event["asked"] for event in value["events"]])
        ledger.bypassed = value["bypassed"]
        return ledger
