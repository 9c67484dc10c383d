"""The `ars` paper: parties that hold different columns of the same people (Table 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from sfumato.studies.ars_alone import alone_rows
from sfumato.studies.ars_base import (
    EFFORTS,
    LIMIT,
    PAPERS_ATTACKER,
    SEEDS,
    difference_row,
    is_variant,
    ours,
    papers_epsilon,
)
from sfumato.studies.base import Part, Scale, Study
from sfumato.studies.papers import paper
from sfumato.studies.rows import Results, Row, accuracy, attack_score, highest, plain_row, score_row
from sfumato.studies.verdicts import Asked

_REBUILT = "category-accuracy"
_BLOCKS = (
    ("workclass", "education", "race", "sex", "hours-per-week"),
    ("age", "education-num", "marital-status", "occupation", "relationship"),
    ("native-country", "capital-gain", "capital-loss", "fnlwgt"),
)
"""Adult's columns among three parties, with about as many entries of the record each."""


def _columns(_data: str, scale: str) -> Scale:
    few: dict[str, Any] = {"epochs": 2} if scale == "smoke" else {}
    strengths = (1.0,) if scale == "smoke" else (0.0, 0.5, 1.0)
    parts = []
    for parties in (1, 2, 3):
        split = {"parties": parties, "split": "columns"}
        held = [column for block in _BLOCKS[:parties] for column in block]
        points = [ours("published", epsilon, few, **split) for epsilon in strengths]
        points += [ours("hardened", epsilon, few, **split) for epsilon in strengths if epsilon]
        parts.append(Part(tuple(points), name=f"parties-{parties}", data={"x": held}))
    return Scale(tuple(parts), EFFORTS[scale], limit=LIMIT.get(scale), seeds=SEEDS[scale])


def _table3(_data: str, results: Results) -> list[Row]:
    """Accuracy, F1 of the frequent class and the share of categorical columns that is rebuilt."""
    rows: list[Row] = []
    last = max(float(r["params"]["epsilon"]) for r in results)
    half = paper("ars").figure("text", "Rec. Acc", "less than")
    for result in results:
        parties, epsilon = result["params"]["parties"], float(result["params"]["epsilon"])
        own = is_variant(result, "published")
        name, line = f"K = {parties}, {result['point']}", f"K = {parties}, {papers_epsilon(epsilon)}"

        def theirs(column: str, line: str = line, own: bool = own) -> float | None:
            return paper("ars").figure_or_none("Table 3", line, column) if own else None

        rows += [
            score_row(f"{name}: accuracy", accuracy(result), paper=theirs("Acc")),
            plain_row(f"{name}: F1", "f1", "higher", _f1(result["utility"]), paper=theirs("F1-score")),
        ]
        papers = attack_score(result, PAPERS_ATTACKER, _REBUILT)
        put = own and epsilon == last
        if papers is not None:
            asked = Asked("ars-columns-privacy", "below", half) if put else None
            name_of = f"{name}: categories rebuilt by the paper's attacker"
            rows.append(score_row(name_of, papers, paper=theirs("Rec. Acc"), asked=asked))
        asked = Asked("ars-columns-privacy", "below", half, "adaptive") if put else None
        best = highest(s for s in result["attacks"] if s["metric"] == _REBUILT)
        rows.append(score_row(f"{name}: categories rebuilt by the best attacker", best, asked=asked))
    for parties in (2, 3):
        held = [r for r in results if r["params"]["parties"] == parties]
        rows += alone_rows(held, name=f"K = {parties}, ")
    return [*rows, *_gains(results, last)]


def _gains(results: Results, last: float) -> list[Row]:
    """What each further party adds to accuracy at the strongest noise, over the same test records."""
    rows = []
    for variant in ("published", "hardened"):
        strongest = [r for r in results if is_variant(r, variant) and float(r["params"]["epsilon"]) == last]
        asked = Asked("ars-columns-accuracy", "above", 0.0) if variant == "published" else None
        for fewer, more in pairwise(sorted(strongest, key=lambda r: int(r["params"]["parties"]))):
            steps = f"K = {more['params']['parties']} less K = {fewer['params']['parties']}"
            name = f"{variant}, ε = {last:g}: accuracy of {steps}"
            rows.append(difference_row(name, (more, accuracy(more)), (fewer, accuracy(fewer)), asked))
    return rows


def _f1(utility: Sequence[Mapping[str, Any]]) -> float:
    """F1 of the frequent class, from accuracy, balanced accuracy and its share p of the victims.

    With a and b the recalls of the two classes, accuracy = p·a + (1 − p)·b and balanced accuracy = (a + b)/2.
    """
    of = {s["metric"]: s for s in utility if s["attack"] == "fresh classifier"}
    right, balanced, p = of["accuracy"]["value"], of["balanced-accuracy"]["value"], of["accuracy"]["baseline"]
    a = (right - 2 * balanced * (1 - p)) / (2 * p - 1)
    b = 2 * balanced - a
    return float(2 * p * a / (2 * p * a + (1 - p) * (1 - b) + p * (1 - a)))


STUDIES = (
    Study(
        "ars-table3",
        "ars-columns",
        "Parties that hold different columns, Table 3",
        "Accuracy and F1 of the frequent class with one to three parties, and the share of the categories that the "
        "paper's attacker and the best one rebuild; and what the first party gets from its own columns alone.",
        {"adult": {"utility": ["income"], "private": []}},
        _columns,
        _table3,
        claims=("ars-columns-accuracy", "ars-columns-privacy", "ars-more-data"),
    ),
)
