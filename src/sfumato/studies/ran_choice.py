"""Which λ is *the proper* one: chosen on one half of the victims, so that the other half can judge it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.intervals import mean_interval, share_interval
from sfumato.studies.rows import Results, accuracy, aligned, attack_score, each_of, key_of, points_of, stored_each

Result = Mapping[str, Any]
MIRROR = "inverse-mirror"
POINT = 0.01
"""How much accuracy a setting may lose against plain features and still count as equally useful; ours."""


@dataclass(frozen=True)
class Chosen:
    """Every point seen through the second half of the victims; ``accurate`` and ``hiding`` are settings of ran that
    the first half chose: the most accurate one, and the one that hides most among those within a point of dnn."""

    dnn: Result
    accurate: Result
    hiding: Result
    resized: Result | None
    noisy: Result | None
    judges: npt.NDArray[np.bool_]
    """Which victims are the second half."""


def choose(results: Results) -> Chosen:
    """Choose settings on the first half of the victims (of the people, where they have several records)."""
    (dnn,) = points_of(results, "dnn")
    right, whose = each_of(dnn, accuracy(dnn))
    first = first_half(len(right), whose)
    rest = ~first
    halves = {id(result): within(result, first) for result in results}
    least = utility_of(halves[id(dnn)]) - POINT

    def utility(result: Result) -> float:
        return utility_of(halves[id(result)])

    def useful(mechanism: str) -> list[Result]:
        return [result for result in points_of(results, mechanism) if utility(result) >= least]

    def hidden(result: Result, attack: str) -> float:
        score = attack_score(halves[id(result)], attack, "mse")
        return 0.0 if score is None else float(score["value"])

    def judged(result: Result | None) -> Result | None:
        return None if result is None else within(result, rest)

    accurate = max(points_of(results, "ran"), key=utility)
    hiding = max(useful("ran") or [accurate], key=lambda result: hidden(result, MIRROR))
    resized = max(useful("dnn-resized"), key=lambda result: hidden(result, MIRROR), default=None)
    noisy = max(useful("noisy"), key=lambda result: hidden(result, "inverse-residual"), default=None)
    return Chosen(
        dnn=within(dnn, rest),
        accurate=within(accurate, rest),
        hiding=within(hiding, rest),
        resized=judged(resized),
        noisy=judged(noisy),
        judges=rest,
    )


def utility_of(result: Result) -> float:
    """The accuracy that ranks a point."""
    return float(accuracy(result)["value"])


def first_half(n: int, whose: npt.NDArray[Any] | None) -> npt.NDArray[np.bool_]:
    """Every other record, or every other person with all their records; audits put victims in random order."""
    units = np.arange(n) if whose is None else np.unique(whose, return_inverse=True)[1]
    return np.asarray(units % 2 == 0)


def within(result: Result, kept: npt.NDArray[np.bool_]) -> Result:
    """The result as these of its victims (N,) alone make it: values of each record, and every score that is their mean.

    Other scores (AUROC, the leakage of a threat) are of all victims and left out.
    """
    stored = {key: np.asarray(value) for key, value in stored_each(result).items()}
    each: dict[str, Any] = {}
    for key, values in stored.items():
        if key.endswith(("|row", "|person")):
            continue
        rows = stored.get(f"{key}|row", np.arange(len(values)))
        if f"{key}|row" not in stored and len(values) != len(kept):
            continue  # nobody knows of which victims these are
        mine = (rows >= 0) & kept[rows]
        each |= {key: values[mine], f"{key}|row": rows[mine]}
        if f"{key}|person" in stored:
            each[f"{key}|person"] = stored[f"{key}|person"][mine]

    def of_these(scores: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        return [_rescored(score, each) for score in scores if len(each.get(key_of(score), ()))]

    whole = {name: value for name, value in result.items() if name not in ("worst", "information", "fairness")}
    return {**whole, "each": each, "utility": of_these(result["utility"]), "attacks": of_these(result["attacks"])}


def _rescored(score: Mapping[str, Any], each: Mapping[str, Any]) -> Mapping[str, Any]:
    key = key_of(score)
    values, whose = np.asarray(each[key], dtype=np.float64), each.get(f"{key}|person")
    ends = share_interval(values, whose) if score["metric"] == "accuracy" else mean_interval(values, whose)
    people = len(values) if whose is None else len(np.unique(whose))
    return {**score, "value": float(values.mean()), "ci": list(ends), "n": len(values), "people": people}


def mean_of_each(results: Sequence[Result], attack: str) -> Result:
    """One result whose error of each record is the mean over these, under the key of ``attack``."""
    found = [attack_score(result, attack, "mse") for result in results]
    scored = [(result, score) for result, score in zip(results, found, strict=True) if score is not None]
    values, whose = aligned(*scored)
    each: dict[str, Any] = {f"{attack}||mse": np.mean(values, axis=0)}
    if whose is not None:
        each[f"{attack}||mse|person"] = whose
    return {"point": "mean over λ", "each": each}
