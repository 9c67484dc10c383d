"""The `ars` paper: private labels (Figures 7 and 8, Table 4), and tasks that nobody named (Table 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from sfumato.studies.ars_base import FACES, LIMIT, PAPERS_ATTACKER, is_variant, ours, worst
from sfumato.studies.base import Part, Scale, Study
from sfumato.studies.rows import Results, Row, accuracy, attack_score, highest, plain_row, score_row

_MIXES = ("1,0,0", "0.5,0.25,0.25", "0,0.5,0.5", "0.5,0.5,0", "0.34,0.33,0.33", "0,1,0")
_HOW_MANY = {"smoke": 2, "cpu": 3, "full": 6}
_TABLE4: Mapping[str, Mapping[float, float]] = {
    "1,0,0": {0.5: 15.274, 1.0: 8.812, 2.0: 6.720},
    "0.5,0.25,0.25": {0.5: 18.363, 1.0: 12.033, 2.0: 9.522},
    "0.34,0.33,0.33": {0.5: 19.408, 1.0: 14.473, 2.0: 10.671},
    "0,0.5,0.5": {0.5: 20.827, 1.0: 19.109, 2.0: 13.179},
}


def _mixes(_data: str, scale: str) -> Scale:
    few: dict[str, Any] = {"epochs": 2} if scale == "smoke" else {}
    strengths = (0.5, 1.0, 1.5, 2.0) if scale == "full" else (1.0,)
    points = [ours("published", e, few, parties=3, lam=mix) for mix in _MIXES[: _HOW_MANY[scale]] for e in strengths]
    points += [ours("hardened", e, few, parties=3) for e in strengths]
    return Scale((Part(tuple(points)),), FACES[scale], limit=LIMIT.get(scale), warm_start=False)


def _figure7(_data: str, results: Results) -> list[Row]:
    """How often the best re-trained classifier gives its more frequent answer: 1 where the noise hides the label."""
    rows = []
    for result in results:
        for label, found in result["confusion"].items():
            matrix = found["matrix"]
            total = sum(map(sum, matrix))
            shares = [sum(row[code] for row in matrix) / total for code in range(len(matrix))]
            name = f"{result['point']}: {label} predicted as its more frequent answer by {found['attack']}"
            rows.append(plain_row(name, "rate", "higher", max(shares)))
    return rows


def _figure8(_data: str, results: Results) -> list[Row]:
    """Accuracy on the task and on both private labels, by the best fresh classifier; and who is found among candidates,
    which the paper does not ask."""
    rows = []
    for result in results:
        rows.append(score_row(f"{result['point']}: task", accuracy(result)))
        for label in ("Male", "Smiling"):
            best = highest(_attacks_on(label, result))
            rows.append(score_row(f"{result['point']}: {label}, private, by {best['attack']}", best))
        found = result["worst"]["reidentification"]
        rows.append(score_row(f"{result['point']}: found among {found['n']} faces by {found['attack']}", found))
    return rows


def _table4(_data: str, results: Results) -> list[Row]:
    """PSNR by the paper's attacker and by the worst one."""
    rows = []
    for result in results:
        theirs = _TABLE4.get(result["params"].get("lam", ""), {}).get(result["params"]["epsilon"])
        for attack, paper in ((PAPERS_ATTACKER, theirs), (str(worst(result)["attack"]), None)):
            score = attack_score(result, attack, "psnr")
            if score is not None:
                rows.append(score_row(f"{result['point']}: PSNR of {attack}", score, paper=paper))
    return rows


_TASKS = ("Heavy_Makeup", "High_Cheekbones", "Male", "Smiling", "Wearing_Lipstick")
_TABLE5: Mapping[float, tuple[float, ...]] = {
    0.0: (0.864, 0.806, 0.917, 0.880, 0.902),
    0.5: (0.857, 0.842, 0.917, 0.847, 0.806),
    1.0: (0.850, 0.801, 0.900, 0.879, 0.867),
    1.5: (0.875, 0.828, 0.893, 0.875, 0.850),
    2.0: (0.859, 0.821, 0.883, 0.843, 0.828),
}


def _tasks(_data: str, scale: str) -> Scale:
    few: dict[str, Any] = {"epochs": 2} if scale == "smoke" else {}
    strengths = tuple(_TABLE5) if scale == "full" else (0.0, 1.0, 2.0)
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


def _table5(_data: str, results: Results) -> list[Row]:
    """Five tasks on one release; and what a release that was hardened for one of them, Smiling, is worth to others."""
    rows = []
    for result in results:
        if result["part"] == "one-task":
            rows += _unseen(result)
            continue
        theirs = _TABLE5.get(result["params"]["epsilon"]) if is_variant(result, "published") else None
        for place, label in enumerate(_TASKS):
            score = next(s for s in result["utility"] if s["target"] == label and s["metric"] == "accuracy")
            paper = None if theirs is None else theirs[place]
            rows.append(score_row(f"{result['point']}: {label}", score, paper=paper))
    return rows


def _unseen(result: Mapping[str, Any]) -> list[Row]:
    rows = [score_row(f"{result['point']}, for Smiling alone: Smiling", accuracy(result))]
    for label in _TASKS:
        found = _attacks_on(label, result)
        if found:
            name = f"{result['point']}, for Smiling alone: {label}, told to hide it"
            rows.append(score_row(name, highest(found)))
    return rows


def _attacks_on(label: str, result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [s for s in result["attacks"] if s["metric"] == "accuracy" and s["target"] == label]


_MIX_DATA: Mapping[str, Mapping[str, Any]] = {
    "celeba": {"utility": ["High_Cheekbones"], "private": ["Male", "Smiling"]}
}
_TASK_DATA: Mapping[str, Mapping[str, Any]] = {"celeba": {"utility": list(_TASKS), "private": []}}

_mix_study = partial(Study, family="ars-mixes", data=_MIX_DATA, scale=_mixes)
STUDIES = (
    _mix_study(
        name="ars-figure7",
        title="Predictions of private labels pushed towards r, Figure 7",
        about="The larger λ_k, the more predictions of the k-th private label equal r_k.",
        rows=_figure7,
    ),
    _mix_study(
        name="ars-figure8",
        title="Accuracy on task and private labels, Figure 8",
        about="The accuracy on private labels with λ_k > 0 comes near 50 %.",
        rows=_figure8,
    ),
    _mix_study(
        name="ars-table4",
        title="PSNR of the compositions of noise, Table 4",
        about="λ₀ = ½ and 1/(2M) for each label defends against both kinds of attack.",
        rows=_table4,
    ),
    Study(
        "ars-table5",
        "ars-tasks",
        "One release, five tasks, Table 5",
        "Representations are independent of the task.",
        _TASK_DATA,
        _tasks,
        _table5,
    ),
)
