"""Which λ is *the proper* one: chosen on one half of the victims, so that the other half can judge it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.run_folder import EACH_RECORD, read_tensors
from sfumato.studies.rows import Results, accuracy, attack_score, each_of, points_of

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


def choose(results: Results) -> Chosen:
    """Choose settings on the first half of the victims (of the people, where they have several records)."""
    (dnn,) = points_of(results, "dnn")
    right, whose = each_of(dnn, accuracy(dnn))
    first = first_half(len(right), whose)
    least = float(right[first].mean()) - POINT

    def utility(result: Result) -> float:
        return float(each_of(result, accuracy(result))[0][first].mean())

    def useful(mechanism: str) -> list[Result]:
        return [result for result in points_of(results, mechanism) if utility(result) >= least]

    def hidden(result: Result, attack: str) -> float:
        score = attack_score(result, attack, "mse")
        return 0.0 if score is None else float(each_of(result, score)[0][first].mean())

    accurate = max(points_of(results, "ran"), key=utility)
    hiding = max(useful("ran") or [accurate], key=lambda result: hidden(result, MIRROR))
    resized = max(useful("dnn-resized"), key=lambda result: hidden(result, MIRROR), default=None)
    noisy = max(useful("noisy"), key=lambda result: hidden(result, "inverse-residual"), default=None)
    rest = ~first
    return Chosen(
        dnn=within(dnn, rest),
        accurate=within(accurate, rest),
        hiding=within(hiding, rest),
        resized=None if resized is None else within(resized, rest),
        noisy=None if noisy is None else within(noisy, rest),
    )


def first_half(n: int, whose: npt.NDArray[Any] | None) -> npt.NDArray[np.bool_]:
    """Every other record, or every other person with all their records; audits put victims in random order."""
    units = np.arange(n) if whose is None else np.unique(whose, return_inverse=True)[1]
    return np.asarray(units % 2 == 0)


def within(result: Result, kept: npt.NDArray[np.bool_]) -> Result:
    """The result with the values of these victims alone; values of a sample of the victims stay as they are."""
    stored = result.get("each") or read_tensors(Path(result["folder"]) / EACH_RECORD)
    values = {key: np.asarray(value) for key, value in stored.items()}
    each = {key: value[kept] if len(value) == len(kept) else value for key, value in values.items()}
    return {**result, "each": each}


def mean_of_each(results: Sequence[Result], attack: str) -> Result:
    """One result whose error of each record is the mean over these, under the key of ``attack``."""
    found = [attack_score(result, attack, "mse") for result in results]
    pairs = [each_of(result, score) for result, score in zip(results, found, strict=True) if score is not None]
    each: dict[str, Any] = {f"{attack}||mse": np.mean([values for values, _ in pairs], axis=0)}
    if pairs[0][1] is not None:
        each[f"{attack}||mse|person"] = pairs[0][1]
    return {"point": "mean over λ", "each": each}
