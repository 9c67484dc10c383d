"""What came of it: a release that passed, or the nearest that could be had and what stands in the way."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.core.policy import Policy
from sfumato.core.run_folder import read_json
from sfumato.workflow.gate import Check
from sfumato.workflow.protect.candidate_search import Attempted, ranked
from sfumato.workflow.protect.candidate_ways import Unfit
from sfumato.workflow.protect.label_floors import LabelFloor
from sfumato.workflow.protect.margins import about_utility

NEAREST = 3


@dataclass(frozen=True)
class Protected:
    """The result of ``protect``, as it is stored in ``protect.json``.

    passed       whether a release left
    release      its folder, or None
    winner       the run folder that was judged, with its figures; None where nothing was worth judging
    command      the ``sfumato fit`` that makes the winner again
    checks       the gate's checks of the winner, on people whom the search never saw
    candidates   everything that was tried, with its figures on the victims of the search
    unfit        mechanisms that did not come into question, and why
    relax        what would have to be asked instead: for each limit in the way, the limit and the value
    floors       what each useful label tells by itself; measured_floors what it told in the release that came nearest
    plan         what was said beforehand, sentence by sentence
    """

    content: Mapping[str, Any]

    @property
    def passed(self) -> bool:
        return bool(self.content["passed"])

    @property
    def release(self) -> Path | None:
        found = self.content["release"]
        return None if found is None else Path(found)

    @property
    def run(self) -> Path | None:
        """The run folder of the winner."""
        winner = self.content["winner"]
        return None if winner is None else Path(winner["folder"])

    @property
    def command(self) -> str:
        return str(self.content["command"] or "")

    @property
    def candidates(self) -> list[dict[str, Any]]:
        return list(self.content["candidates"])

    def to_json(self) -> dict[str, Any]:
        return dict(self.content)

    def _repr_html_(self) -> str:
        from sfumato.core.notebook import facts_table

        said = "released" if self.passed else "not released"
        facts: dict[str, object] = {check["asked"]: check["because"] for check in self.content["checks"]}
        return facts_table(f"sfumato protect: {said}", facts)


@dataclass(frozen=True)
class Relaxed:
    """A limit that stands in the way of a candidate, and what it would have to be."""

    limit: str
    to: str
    candidate: str
    alone: bool

    def __str__(self) -> str:
        more = "" if self.alone else " (with its other limits relaxed, too)"
        return f"{self.limit} → {self.to}, and '{self.candidate}' would pass{more}"

    def to_json(self) -> dict[str, Any]:
        return {"limit": self.limit, "to": self.to, "candidate": self.candidate, "alone": self.alone}


def relaxed(missed: Sequence[tuple[str, Sequence[Check]]]) -> list[Relaxed]:
    """For each limit in the way the smallest step that lets a candidate pass, those that would do alone first."""
    found: dict[str, tuple[tuple[bool, float], Relaxed]] = {}
    for name, checks in missed:
        alone = len(checks) == 1
        for check in checks:
            if check.found is None or check.limit is None:
                continue
            by = abs(check.found - check.limit)
            one = Relaxed(check.asked, wanted(check), name, alone)
            if check.asked not in found or (not alone, by) < found[check.asked][0]:
                found[check.asked] = (not alone, by), one
    return [one for _, one in sorted(found.values(), key=lambda pair: pair[0])]


def wanted(check: Check) -> str:
    """The limit that the check would have passed, rounded to its side: whole percent, or three digits."""
    assert check.found is not None
    lower = check.asked.startswith("min ")
    if check.share:
        return f"{math.ceil(100 * check.found - 1e-9)}%"
    digits = 3 if about_utility(check) or abs(check.found) >= 0.1 else 5
    scale = 10.0**digits
    return f"{(math.floor if lower else math.ceil)(check.found * scale + (1e-9 if lower else -1e-9)) / scale:g}"


def nearest(attempted: Sequence[Attempted]) -> list[dict[str, Any]]:
    """The candidates that come nearest to the policy, with what they miss by the figures of the search."""
    found = []
    for one in ranked(attempted)[:NEAREST]:
        placed = one.standing
        if placed is not None:
            missed = [check.to_json() for check in placed.missed]
            found.append({"candidate": str(one.candidate), "utility": placed.utility, "missed": missed})
    return found


def in_the_way(
    attempted: Sequence[Attempted], judged: tuple[str, Sequence[Check]] | None
) -> list[tuple[str, Sequence[Check]]]:
    """What each candidate misses: the judged one by the judgement, the others by the search."""
    known = [] if judged is None else [judged]
    rest = [
        (str(one.candidate), one.standing.missed)
        for one in attempted
        if one.standing is not None and one.standing.missed and (judged is None or str(one.candidate) != judged[0])
    ]
    return [*known, *rest]


def measured_floors(scores: Mapping[str, Any], policy: Policy) -> list[dict[str, Any]]:
    """What a reader of a useful label alone got out of an audited release, against the limits on that private label.

    No mechanism that serves the label as well, and whose errors hide nothing by themselves, can be below.
    """
    primary = [one for one in scores["attacks"] if one["follows"] and one["primary"] and one["leakage_ci"]]
    served = {one["target"]: one["value"] for one in reversed(scores["utility"]) if one["primary"]}
    found = []
    for one in primary:
        limits = [
            limit
            for limit in policy.thresholds
            if limit.limit == "max" and limit.share and (limit.what, limit.label) in _meant(one)
        ]
        low, high = one["leakage_ci"]
        beyond = [str(limit) for limit in limits if limit.value < low]
        about = (
            f"reading '{one['follows']}' alone, which the release serves with {served.get(one['follows'], 0.0):.3g}, "
            f"gives {one['leakage']:.0%} [{low:.0%}, {high:.0%}] of '{one['target']}' away ({one['attack']})"
        )
        more = f", beyond the limit {beyond[0]}: no mechanism that serves it as well can keep that" if beyond else ""
        found.append({**one, "beyond": beyond, "sentence": f"{about}{more}"})
    return found


def _meant(score: Mapping[str, Any]) -> set[tuple[str, str | None]]:
    return {(score["threat"], score["target"]), (score["threat"], None)}


def counted(attempted: Sequence[Attempted]) -> dict[str, int]:
    """What a search cost: fits, and training steps of attacks."""
    return {
        "fits": len(attempted),
        "attack_steps": sum(int(one.outcome.get("attack_steps", 0)) for one in attempted),
    }


def facts(
    attempted: Sequence[Attempted],
    unfit: Sequence[Unfit],
    floors: Sequence[LabelFloor],
    plan: Sequence[str],
    policy: Policy,
) -> dict[str, Any]:
    """What every outcome tells, whether something was released or not."""
    audited = next((one.folder / "scores.json" for one in ranked(attempted)), None)
    read = [] if audited is None else measured_floors(read_json(audited), policy)
    return {
        "measured_floors": read,
        "candidates": [one.to_json() for one in attempted],
        "unfit": [one.to_json() for one in unfit],
        "floors": [{**one.to_json(), "sentence": str(one)} for one in floors],
        "plan": list(plan),
        "cost": counted(attempted),
    }
