"""Whether the audit of rows fools itself: releases of nobody's records show nothing, the owner's own rows everything.

A third random part of one population is independent of the owner's records: the interval of every attack has to hold
zero in 95 % of the runs, in both directions. A release of the owner's rows in another order has to show ≥ 95 %.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
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
QUESTIONS = ("singling-out", "linkability", "inference", "membership", "copies")


@dataclass(frozen=True)
class _Pair:
    """One null run and one of copies: of each attack whether its interval lies below, on or above 0."""

    sides: dict[str, int]
    worst_holds: dict[str, bool]
    copied: dict[str, float]


def run(small: bool = False, runs: int = RUNS, people: int = PEOPLE) -> dict[str, Any]:
    """So many runs of each kind, every time with other people."""
    covered, above, below, worst = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    least: dict[str, list[float]] = {question: [] for question in QUESTIONS}
    with ProcessPoolExecutor(_PROCESSES, multiprocessing.get_context("spawn")) as pool:
        for pair in pool.map(_pair, range(runs), [people] * runs):
            for name, side in pair.sides.items():
                covered[name] += side == 0
                above[name] += side > 0
                below[name] += side < 0
            for question in QUESTIONS:
                worst[question] += pair.worst_holds[question]
                least[question].append(pair.copied[question])
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
        "holds": fewest >= 0.95 and shown == len(QUESTIONS),
    }


def _pair(number: int, people: int) -> _Pair:
    """The audits of a release of other people and of a copy, of people whom no other number has."""
    owner, holdout, nobody = (made_up_people(people, 3 * number + part) for part in range(3))
    nothing = audit_release(nobody, owner=owner, holdout=holdout, private=PRIVATE, effort=EFFORT, seed=number)
    sides = {}
    for score in nothing["attacks"]:
        if score["primary"]:
            name = score["attack"] + (f":{score['target']}" if score["target"] else "")
            low, high = score["ci"]
            sides[name] = int(low > 0.0) - int(high < 0.0)
    holds = {question: nothing["worst"][question]["ci"][0] <= 0.0 for question in QUESTIONS}
    order = np.random.default_rng(number).permutation(people)
    copied = {name: values[order] for name, values in owner.items()}
    everything = audit_release(copied, owner=owner, holdout=holdout, private=PRIVATE, effort=EFFORT, seed=number)
    return _Pair(sides, holds, {name: float(everything["worst"][name]["leakage"]) for name in QUESTIONS})
