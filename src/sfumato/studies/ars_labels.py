"""The `ars` paper: private labels (Figures 7 and 8, Table 4), and tasks that nobody named (Table 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.intervals import mean_interval, share_interval
from sfumato.core.randomness import derive_seed
from sfumato.core.threats import ATTRIBUTE
from sfumato.studies.ars_alone import alone_rows
from sfumato.studies.ars_base import (
    FACES,
    FEW_FACES,
    FIFTY,
    LIMIT,
    NO_UNIT,
    attackers,
    is_variant,
    ours,
    papers_epsilon,
)
from sfumato.studies.ars_drawings import Values as Shares
from sfumato.studies.ars_drawings import draw_mixes
from sfumato.studies.base import Part, Scale, Study
from sfumato.studies.papers import paper
from sfumato.studies.rows import Results, Row, Values, accuracy, each_of, highest, score_row
from sfumato.studies.verdicts import Asked, Setting

_ALONE, _NONE = "0,1,0", "1,0,0"
"""All noise for the first private label, and none for any."""
_MIXES = (_NONE, "0.5,0.25,0.25", _ALONE, "0,0.5,0.5", "0.5,0.5,0", "0.34,0.33,0.33")
_HOW_MANY = {"smoke": 3, "cpu": 4, "full": 6}
_PRIVATE = ("Male", "Smiling")
_FIFTY_PERCENT = 0.55
"""What rounds to 50 %."""


def _mixes(_data: str, scale: str) -> Scale:
    few: dict[str, Any] = {"epochs": 2} if scale == "smoke" else {}
    strengths = (0.5, 1.0, 1.5, 2.0) if scale == "full" else (1.0,)
    points = [ours("published", e, few, parties=3, lam=mix) for mix in _MIXES[: _HOW_MANY[scale]] for e in strengths]
    points += [ours("hardened", e, few, parties=3) for e in strengths]
    return Scale((Part(tuple(points)),), FACES[scale], limit=LIMIT.get(scale), warm_start=False)


def _figure7(_data: str, results: Results) -> list[Row]:
    """P[F_k(ẑ) = r_k] of the paper's classifier and of the best one of each private label, and what λ_k adds to it."""
    rows = []
    for result in results:
        for label in _PRIVATE if is_variant(result, "published") else ():
            for who, _, score in _classifiers(label, result, "accuracy"):
                hits, whose = equal_to_target(result, score)
                name, ends = f"{result['point']}: {label} predicted as r by {who}", share_interval(hits, whose)
                n, people = len(hits), _people(whose)
                rows.append(Row(name, "rate", "higher", None, float(hits.mean()), ends, n=n, people=people))
    mixes = {r["params"]["lam"]: r for r in results if r["params"].get("lam") and r["params"]["epsilon"] == FIFTY}
    return rows + (_weighed(mixes[_ALONE], mixes[_NONE]) if _ALONE in mixes and _NONE in mixes else [])


def _draw_figure7(_data: str, results: Results, path: Path) -> None:
    """Share of the predictions that are r_k, by mix."""

    def values(result: Mapping[str, Any]) -> Shares:
        found = {}
        for label in _PRIVATE:
            for who, _, score in _classifiers(label, result, "accuracy"):
                hits, whose = equal_to_target(result, score)
                found[f"{label}, {who}"] = (float(hits.mean()), share_interval(hits, whose))
        return found

    draw_mixes(path, [r for r in results if is_variant(r, "published")], values, y="share predicted as r")


def _weighed(all_for_it: Mapping[str, Any], none: Mapping[str, Any]) -> list[Row]:
    """How many more predictions of the first private label are r_k where all noise is for it, over the same victims."""
    label, rows = _PRIVATE[0], []
    without = {who: score for who, _, score in _classifiers(label, none, "accuracy")}
    for who, setting, score in _classifiers(label, all_for_it, "accuracy"):
        hits, whose = equal_to_target(all_for_it, score)
        more = hits - equal_to_target(none, without[who])[0]
        asked = Asked("ars-attribute-weight", "above", 0.0, setting)
        name = f"published noise: {label} predicted as r by {who} where all noise is for it, less where none is"
        ends = mean_interval(more, whose)
        n, people = len(more), _people(whose)
        rows.append(Row(name, "rate difference", "higher", None, float(more.mean()), ends, asked, n, people))
    return rows


def _people(whose: npt.NDArray[Any] | None) -> int | None:
    """How many people these records are of, where that is another number."""
    return None if whose is None else len(np.unique(whose))


def equal_to_target(result: Mapping[str, Any], score: Mapping[str, Any]) -> tuple[Values, npt.NDArray[Any] | None]:
    """Whether each prediction of a victim's label is r_k, (N,), and whose record each is."""
    answers, _ = each_of(result, {**score, "metric": "answer"})
    _, whose = each_of(result, score)
    return (answers == target(result["seed"], score["target"], 2)).astype(np.float64), whose


def target(seed: int, label: str, classes: int) -> int:
    """r_k of Eq. 14, as the mechanism of this seed draws it."""
    return derive_seed(seed, "r", label) % classes


def _figure8(data: str, results: Results) -> list[Row]:
    """Accuracy on the task and on both private labels, by the best fresh classifier; and who is found among candidates,
    which the paper does not ask."""
    rows = []
    for result in results:
        rows.append(score_row(f"{result['point']}: task", accuracy(result)))
        for place, label in enumerate(_PRIVATE):
            name = f"{result['point']}: {label}, private"
            rows.append(score_row(name, highest(_attacks_on(label, result))))
            weight = float(result["params"].get("lam", _NONE).split(",")[1 + place])
            put = weight > 0.0 and result["params"]["epsilon"] == FIFTY
            for who, setting, score in _classifiers(label, result):
                asked = Asked("ars-attribute-half", "below", _FIFTY_PERCENT, setting, FEW_FACES.get(data, ""))
                rows.append(score_row(f"{name}, balanced, by {who}", score, asked=asked if put else None))
        found = result["worst"]["reidentification"]
        rows.append(score_row(f"{result['point']}: found among {found['n']} faces", found))
    return [*rows, *alone_rows(results, name="task, ", unless=FEW_FACES.get(data, ""))]


def _draw_figure8(_data: str, results: Results, path: Path) -> None:
    """Accuracy on the task and on the private labels, by mix."""

    def values(result: Mapping[str, Any]) -> Shares:
        scores = {"task": accuracy(result)}
        scores |= {f"{label}, private": highest(_attacks_on(label, result)) for label in _PRIVATE}
        return {name: (float(s["value"]), (float(s["ci"][0]), float(s["ci"][1]))) for name, s in scores.items()}

    draw_mixes(path, results, values, y="accuracy")


def _classifiers(
    label: str, result: Mapping[str, Any], metric: str = "balanced-accuracy"
) -> list[tuple[str, Setting, Mapping[str, Any]]]:
    """Eq. 13's network, trained on protected latents, and the best classifier of all that read nothing else."""
    scores = [s for s in _attacks_on(label, result, metric) if s["threat"] == ATTRIBUTE]
    own = next((s for s in scores if s["attack"] == "probe-mlp"), None)
    found: list[tuple[str, Setting, Mapping[str, Any]]] = [("the best classifier", "adaptive", highest(scores))]
    return found if own is None else [("the paper's classifier, probe-mlp", "paper", own), *found]


def _table4(_data: str, results: Results) -> list[Row]:
    """PSNR by the paper's attacker and by the worst one."""
    said = paper("ars")
    rows = []
    for result in results:
        mix, epsilon = result["params"].get("lam", ""), float(result["params"]["epsilon"])
        for who, setting, score in attackers(result, "psnr"):
            theirs = said.figure_or_none("Table 4", mix, papers_epsilon(epsilon)) if setting == "paper" else None
            put = mix == "0.5,0.25,0.25" and epsilon == FIFTY
            asked = Asked("ars-both-attacks", "below", said.figure("Table 2", "[6]", "psnr"), setting, NO_UNIT)
            name = f"{result['point']}: PSNR of {who}"
            rows.append(score_row(name, score, paper=theirs, asked=asked if put else None))
    return rows


_TASKS = ("Heavy_Makeup", "High_Cheekbones", "Male", "Smiling", "Wearing_Lipstick")


def _tasks(_data: str, scale: str) -> Scale:
    few: dict[str, Any] = {"epochs": 2} if scale == "smoke" else {}
    strengths = (0.0, 0.5, 1.0, 1.5, 2.0) if scale == "full" else (0.0, 1.0, 2.0)
    points = [ours("published", epsilon, few, parties=3) for epsilon in strengths]
    points += [ours("hardened", epsilon, few, parties=3) for epsilon in (1.0,)]
    known = Part(tuple(points), name="five-tasks")
    unseen = Part(
        (ours("hardened", 1.0, few, parties=3),),
        name="one-task",
        data={"utility": ["Smiling"], "private": [label for label in _TASKS if label != "Smiling"]},
        effort=replace(FACES[scale], threats=("attribute",)),
    )
    return Scale((known, unseen), replace(FACES[scale], threats=()), limit=LIMIT.get(scale))


def _table5(data: str, results: Results) -> list[Row]:
    """Five tasks on one release; and what a release that was hardened for one of them, Smiling, is worth to others."""
    rows = []
    least = paper("ars").figure("text", "Table 5", "higher than")
    for result in results:
        if result["part"] == "one-task":
            rows += _unseen(result)
            continue
        own, column = is_variant(result, "published"), papers_epsilon(float(result["params"]["epsilon"]))
        for label in _TASKS:
            score = next(s for s in result["utility"] if s["target"] == label and s["metric"] == "accuracy")
            theirs = paper("ars").figure_or_none("Table 5", label, column) if own else None
            asked = Asked("ars-task-independent", "above", least, unless=FEW_FACES.get(data, "")) if own else None
            rows.append(score_row(f"{result['point']}: {label}", score, paper=theirs, asked=asked))
    known = [r for r in results if r["part"] != "one-task"]
    for label in _TASKS:
        rows += alone_rows(known, name=f"{label}, ", label=label, unless=FEW_FACES.get(data, ""))
    return rows


def _unseen(result: Mapping[str, Any]) -> list[Row]:
    rows = [score_row(f"{result['point']}, for Smiling alone: Smiling", accuracy(result))]
    for label in _TASKS:
        found = _attacks_on(label, result)
        if found:
            name = f"{result['point']}, for Smiling alone: {label}, told to hide it"
            rows.append(score_row(name, highest(found)))
    return rows


def _attacks_on(label: str, result: Mapping[str, Any], metric: str = "accuracy") -> list[Mapping[str, Any]]:
    return [s for s in result["attacks"] if s["metric"] == metric and s["target"] == label]


_MIX_DATA: Mapping[str, Mapping[str, Any]] = {"celeba": {"utility": ["High_Cheekbones"], "private": list(_PRIVATE)}}
_TASK_DATA: Mapping[str, Mapping[str, Any]] = {"celeba": {"utility": list(_TASKS), "private": []}}

_mix_study = partial(Study, family="ars-mixes", data=_MIX_DATA, scale=_mixes)
STUDIES = (
    _mix_study(
        name="ars-figure7",
        title="Predictions of private labels pushed towards r, Figure 7",
        about="Share of the predictions of each private label, by the paper's classifier and by the best fresh one, "
        "that equal the r_k towards which the noise moves them, and what λ_k adds to it over the same victims.",
        rows=_figure7,
        claims=("ars-attribute-weight",),
        picture=_draw_figure7,
    ),
    _mix_study(
        name="ars-figure8",
        title="Accuracy on task and private labels, Figure 8",
        about="Accuracy on the task and on two private labels, and how many faces are found among candidates; and what "
        "a party gets at the task without the others.",
        rows=_figure8,
        claims=("ars-attribute-half", "ars-more-data"),
        picture=_draw_figure8,
    ),
    _mix_study(
        name="ars-table4",
        title="PSNR of the compositions of noise, Table 4",
        about="PSNR of rebuilt faces for each mixture of noise, by the paper's attacker and by the worst one.",
        rows=_table4,
        claims=("ars-both-attacks",),
    ),
    Study(
        "ars-table5",
        "ars-tasks",
        "One release, five tasks, Table 5",
        "Accuracy of five tasks on one release; and what a release that was hardened for one of them is worth to the "
        "others. And what a party gets alone.",
        _TASK_DATA,
        _tasks,
        _table5,
        claims=("ars-task-independent", "ars-more-data"),
    ),
)
