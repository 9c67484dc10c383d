"""How far a candidate is from every limit: by its figures, and by the ends of their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.core.policy import UTILITY_METRICS, Policy
from sfumato.workflow.gate import Check, checks_of

End = Literal["figure", "favourable", "unfavourable"]
_FAILED = 1.0
"""What a limit counts that is missed (or, negative, kept) by no amount: a proof, whether a release serves anybody."""


@dataclass(frozen=True)
class Standing:
    """Where one candidate stands.

    utility    what the best reader of the utility labels gets, their mean
    shortfall  how far utility is below its limits, by the figures (negative: above)
    excess     how far a threat is above its limit, by the figures (negative: below)
    strict     the largest miss by the unfavourable ends, which count in the gate
    hopeless   whether some limit is missed even by the favourable end
    missed     the limits that the gate would call failed
    """

    utility: float
    shortfall: float
    excess: float
    strict: float
    hopeless: bool
    missed: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return not self.missed

    @property
    def near(self) -> bool:
        """Whether every figure by itself is within its limit."""
        return max(self.shortfall, self.excess) <= 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "utility": self.utility,
            "shortfall": self.shortfall,
            "excess": self.excess,
            "strict": self.strict,
            "passed": self.passed,
            "missed": [check.to_json() for check in self.missed],
        }


def standing(scores: Mapping[str, Any], policy: Policy) -> Standing:
    """Where the audited candidate stands against the policy."""
    figures = checks_at(scores, policy, "figure")
    worst = checks_at(scores, policy, "unfavourable")
    best = checks_at(scores, policy, "favourable")
    useful = [miss(check) for check in figures if about_utility(check)]
    hidden = [miss(check) for check in figures if not about_utility(check)]
    return Standing(
        utility=served_by(scores, policy),
        shortfall=max(useful, default=0.0),
        excess=max(hidden, default=0.0),
        strict=max((miss(check) for check in worst), default=0.0),
        hopeless=any(check.outcome == "failed" for check in best),
        missed=tuple(check for check in worst if not check.passed),
    )


def checks_at(scores: Mapping[str, Any], policy: Policy, end: End) -> list[Check]:
    """The gate's checks, as if every interval were that one end of it."""
    if end == "unfavourable":
        return list(checks_of(scores, policy))
    moved = {
        **scores,
        "utility": [_at(one, end, for_reader=True) for one in scores["utility"]],
        "worst": {key: _at(one, end, for_reader=False) for key, one in scores["worst"].items()},
    }
    return list(checks_of({**moved, "exposure": _groups(scores.get("exposure", {}), end)}, policy))


def served_by(scores: Mapping[str, Any], policy: Policy) -> float:
    """The mean over the utility labels of what the best reader of each gets, in the metric that the policy limits."""
    asked = [one.what for one in policy.thresholds if one.what in UTILITY_METRICS]
    found: dict[tuple[str, str], float] = {}
    for one in scores["utility"]:
        if one["metric"] in asked:
            key = (str(one["target"]), one["metric"])
            value = float(one["value"]) * (1.0 if one["better_for_owner"] == "higher" else -1.0)
            found[key] = max(found.get(key, value), value)
    return sum(found.values()) / len(found) if found else 0.0


def about_utility(check: Check) -> bool:
    """Whether a check is of use, not of a threat or a proof."""
    limit, _, rest = check.asked.partition(" ")
    return limit == "useful" or rest.partition(" ")[0].partition(":")[0] in UTILITY_METRICS


def miss(check: Check) -> float:
    """By how much a limit is missed (negative: kept): in points where it is a share, else as a share of the limit."""
    if check.found is None or check.limit is None:
        return -_FAILED if check.passed else _FAILED
    over = check.limit - check.found if check.asked.startswith("min ") else check.found - check.limit
    return over if check.share or about_utility(check) else over / max(check.limit, 1e-9)


def _at(score: Mapping[str, Any], end: End, *, for_reader: bool) -> dict[str, Any]:
    """The score with its interval shrunk to the figure, or to the end that its owner would like best."""
    high = score["better_for_owner"] == "higher"
    value = score["value"] if end == "figure" else score["ci"][1 if high else 0]
    shares = score.get("leakage_ci")
    share = score.get("leakage") if end == "figure" or shares is None else shares[0]
    return {
        **score,
        "value": value,
        "ci": [value, value],
        "leakage": share,
        "leakage_ci": None if shares is None or for_reader else [share, share],
    }


def _groups(exposure: Mapping[str, Any], end: End) -> dict[str, Any]:
    """Groups of people with their intervals shrunk alike, and the share of people of whom much is leaked."""
    return {
        key: {
            **one,
            "share_above": _above(one["share_above"], end),
            "groups": [
                {**group, "leakage_ci": [_share(group, end)] * 2} if group.get("leakage_ci") else group
                for group in one["groups"]
            ],
        }
        for key, one in exposure.items()
    }


def _above(share: Mapping[str, Any], end: End) -> dict[str, Any]:
    value = share["share"] if end == "figure" else share["ci"][0]
    return {**share, "share": value, "ci": [value, value]}


def _share(group: Mapping[str, Any], end: End) -> float:
    return float(group["leakage"] if end == "figure" else group["leakage_ci"][0])
