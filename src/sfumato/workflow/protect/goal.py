"""What somebody wants of a release before there is one: what stays useful, what stays hidden, and what may leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sfumato.core.errors import UsageError, unknown
from sfumato.core.policy import UTILITY_METRICS, Policy, Threshold, kinds_required
from sfumato.core.threats import ATTRIBUTE, ATTRIBUTE_WITH_LABELS
from sfumato.mechanisms.search_space import LEAVES, Leaves

_SUFFIX, _ROWS = "-with-labels", "rows"
_NUMBER_METRICS = ("r2", "mae")
_PROVEN: Mapping[str, Leaves] = {"dp": "rows", "proven": "rows", "anonymity": "messages"}
"""What leaves if a proof is required and nothing else is said."""


@dataclass(frozen=True)
class Goal:
    """A policy put to whatever can be made of one data source.

    ``data`` are the arguments of ``load_splits`` without seed. With ``labels`` the utility labels leave, too, and
    limits hold for attackers who read them.
    """

    policy: Policy
    data: Mapping[str, Any]
    leaves: Leaves
    seed: int = 0
    labels: bool = False

    @property
    def asked(self) -> Policy:
        """What the audit of a candidate can show; review day and ledger are for the gate of the release."""
        return replace(self.gated, review=None, epsilon_total=None)

    @property
    def gated(self) -> Policy:
        """The policy as it is put to the release."""
        return self.policy.with_labels() if self.labels and self.leaves != _ROWS else self.policy

    @cached_property
    def threats(self) -> tuple[str, ...]:
        """The threats that the policy limits, each once, whoever reads the labels."""
        named = (one.what.removesuffix(_SUFFIX) for one in self.policy.thresholds if one.what not in UTILITY_METRICS)
        return tuple(dict.fromkeys(named))

    @property
    def attacked(self) -> tuple[str, ...]:
        """The threats that a cheap audit tries: those that the policy limits."""
        named = [one.what for one in self.gated.thresholds if one.what not in UTILITY_METRICS]
        return tuple(dict.fromkeys(named))

    @property
    def wants_proof(self) -> tuple[str, ...]:
        """The kinds of guarantee that would do; empty: any."""
        return () if self.policy.require is None else kinds_required(self.policy.require)

    def to_json(self) -> dict[str, Any]:
        return {
            "policy": self.policy.to_json(),
            "data": dict(self.data),
            "leaves": self.leaves,
            "seed": self.seed,
            "labels": self.labels,
        }


def goal_of(
    policy: Policy, data: Mapping[str, Any], leaves: str | None = None, *, seed: int = 0, labels: bool = False
) -> Goal:
    """The goal, if it can be a goal at all.

    Without ``leaves`` it is what a required proof is about, else features.

    Raises:
        UsageError: Nothing must be useful, nothing must be hidden, or limits contradict one another.
    """
    if leaves is not None and leaves not in LEAVES:
        raise unknown("kind of release (--leaves)", leaves, LEAVES)
    private_wanted = any(one.what not in UTILITY_METRICS for one in policy.thresholds) or policy.require is not None
    if not private_wanted:
        raise UsageError(
            "nothing is to stay hidden: give a limit on a threat (--max attribute=10%, --max reconstruction=30%) or "
            "--require dp."
        )
    if not any(one.what in UTILITY_METRICS for one in policy.thresholds):
        raise UsageError(
            "nothing is to stay useful, and noise alone would pass: give a limit such as --min accuracy=0.7 or r2=0.3."
        )
    usual = LEAVES[0] if policy.require is None else _PROVEN[policy.require]
    chosen = next((one for one in LEAVES if one == leaves), usual)
    return Goal(policy, data, chosen, seed, labels)


def check_labels(goal: Goal, utility: Sequence[str], private: Sequence[str], numbers: Sequence[str]) -> None:
    """Raise if a limit speaks of a label that there is not, or by a metric that does not fit it."""
    for one in goal.policy.thresholds:
        if one.what in UTILITY_METRICS:
            _check_utility(one, utility, numbers)
        elif one.what in (ATTRIBUTE, ATTRIBUTE_WITH_LABELS):
            if not private:
                raise UsageError(f"the limit '{one}' needs to know what nobody may learn: name it with --private.")
            if one.label is not None and one.label not in private:
                raise UsageError(f"the limit '{one}': {unknown('private label', one.label, private)}")
    both = sorted(set(utility) & set(private))
    if both:
        raise UsageError(f"'{both[0]}' is to stay useful and hidden at once: take it out of --utility or of --private.")


def _check_utility(asked: Threshold, utility: Sequence[str], numbers: Sequence[str]) -> None:
    if not utility:
        raise UsageError(f"the limit '{asked}' needs to know what must stay useful: name it with --utility.")
    if asked.label is not None and asked.label not in utility:
        raise UsageError(f"the limit '{asked}': {unknown('utility label', asked.label, utility)}")
    meant = [label for label in utility if asked.label in (None, label)]
    for_numbers = asked.what in _NUMBER_METRICS
    if not any((label in numbers) == for_numbers for label in meant):
        kind = "classes: use accuracy, balanced-accuracy or auroc" if for_numbers else "a number: use r2"
        raise UsageError(f"the limit '{asked}': '{meant[0]}' is {kind}.")
