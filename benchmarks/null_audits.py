"""Whether the audit of rows fools itself: releases of nobody's records show nothing, the owner's own rows everything.

A third random part of one population is independent of the owner's records: the interval of every attack has to hold
zero in 95 % of the runs, in both directions. A release of the owner's rows in another order has to show ≥ 95 %. In
neither is any group worse off than the rest. The makers are called as well: one draws other people, one copies.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato import audit_release
from sfumato.auditing import SMOKE
from sfumato.core.intervals import wilson
from sfumato.testing.made_up_people import made_up_people

RUNS = 40
_PROCESSES = 2
PEOPLE = 250
PRIVATE = ("diagnosis", "age", "town")
EFFORT = replace(SMOKE, suspects=500, predicates=200)
COPIED = ("membership", "copies")
"""The questions by which all copied people are as badly off; of the others, some people give more to guess."""
QUESTIONS = ("singling-out", "linkability", "inference", "membership", "copies")


@dataclass(frozen=True)
class Pair:
    """One null run and one of copies: of each attack whether its interval lies below, on or above 0, and its leakage in
    copies; and of both whether any group was called worse off than the rest."""

    sides: dict[str, int]
    worst_holds: dict[str, bool]
    copied: dict[str, float]
    shadows: dict[str, float]
    group_worse: tuple[bool, bool]


def run(small: bool = False, runs: int = RUNS, people: int = PEOPLE) -> dict[str, Any]:
    """So many runs of each kind, every time with other people."""
    with ProcessPoolExecutor(_PROCESSES, multiprocessing.get_context("spawn")) as pool:
        return summed(list(pool.map(pair, range(runs), [people] * runs)), people)


def summed(pairs: Sequence[Pair], people: int) -> dict[str, Any]:
    """What so many runs of each kind say."""
    runs = len(pairs)
    covered, above, below, worst = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    least: dict[str, list[float]] = {question: [] for question in QUESTIONS}
    for one in pairs:
        for name, side in one.sides.items():
            covered[name] += side == 0
            above[name] += side > 0
            below[name] += side < 0
        for question in QUESTIONS:
            worst[question] += one.worst_holds[question]
            least[question].append(one.copied[question])
    total = runs * len(covered)
    fewest = min(covered.values()) / runs
    shown = sum(min(values) >= 0.95 for values in least.values())
    return {
        "claim": "no attack sees anything in a release of other people in ≥ 95 % of runs; copies show ≥ 95 %",
        "runs": runs,
        "people": people,
        "intervals that hold 0": round(sum(covered.values()) / total, 4),
        "95 % interval of that": [round(end, 4) for end in wilson(sum(covered.values()), total)],
        "fewest of one attack": round(fewest, 4),
        "by attack: holds 0, above, below": {
            name: [covered[name], above[name], below[name]] for name in sorted(covered)
        },
        "worst attack of a question holds 0": {name: worst[name] for name in QUESTIONS},
        "least leakage of copies": {name: round(min(values), 4) for name, values in least.items()},
        "least leakage of copies by shadow releases": {
            name: round(min(one.shadows[name] for one in pairs), 4) for name in pairs[0].shadows
        },
        "runs of nobody's rows with a group called worse": sum(one.group_worse[0] for one in pairs),
        "runs of copies with a group called worse by membership or copies": sum(one.group_worse[1] for one in pairs),
        "holds": fewest >= 0.95 and shown == len(QUESTIONS),
    }


def pair(number: int, people: int) -> Pair:
    """The audits of a release of other people and of a copy, of people whom no other number has."""
    owner, holdout, nobody = (made_up_people(people, 3 * number + part) for part in range(3))
    drawn = iter(range(1_000_000 + 100 * number, 1_000_100 + 100 * number))
    given: dict[str, Any] = {"owner": owner, "holdout": holdout, "private": PRIVATE, "effort": EFFORT, "seed": number}
    nothing = audit_release(nobody, **given, pipeline=lambda records: made_up_people(len(records["age"]), next(drawn)))
    sides = {}
    for score in nothing["attacks"]:
        if score["primary"]:
            name = score["attack"] + (f":{score['target']}" if score["target"] else "")
            low, high = score["ci"]
            sides[name] = int(low > 0.0) - int(high < 0.0)
    holds = {question: (nothing["worst"][question]["leakage_ci"] or [0.0])[0] == 0.0 for question in QUESTIONS}
    order = np.random.default_rng(number).permutation(people)
    copied = {name: values[order] for name, values in owner.items()}
    everything = audit_release(copied, **given, pipeline=lambda records: records)
    shadows = {
        one["attack"]: float(one["leakage"])
        for one in everything["attacks"]
        if one["primary"] and one["attack"].startswith("member-shadow")
    }
    found = {name: float(everything["worst"][name]["leakage"]) for name in QUESTIONS}
    return Pair(sides, holds, found, shadows, (_any_worse(nothing), _any_worse(everything, COPIED)))


def _any_worse(found: dict[str, Any], questions: Sequence[str] | None = None) -> bool:
    asked = found["exposure"] if questions is None else questions
    return any(one["worse"] for question in asked for one in found["exposure"][question]["groups"])
