"""The `filter` paper on Adult: Table 2, beside autoencoders of equal capacity that are made fair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.auditing.fairness import PARITY
from sfumato.studies.base import Part, Scale, Study
from sfumato.studies.fairness_rows import fairness_rows
from sfumato.studies.filter_base import (
    EFFORTS,
    LIMIT,
    PAPER,
    READER,
    SETTINGS,
    VAE,
    apart,
    few_steps,
    moved,
    paired,
    private,
    raw,
    useful,
)
from sfumato.studies.rows import Results, Row, points_of, score_row
from sfumato.studies.verdicts import Asked, Setting
from sfumato.workflow import Point

AUTOENCODER: Mapping[str, Any] = {"latent": 20, "gamma": 0.5, "epochs": 30}
CAPACITY = 17.4
"""Nats that this autoencoder's latent holds at the end of its training: LMIFR is allowed as many."""

_SEEDS = {"smoke": (0,), "cpu": (0, 1, 2, 3, 4), "full": tuple(range(10))}
_PRINTED = {"vae": "VAE", "vfae": "VFAE", "lmifr": "LMIFR", "filter-linear": "Ours"}
_OTHERS = ("vae", "vfae", "lmifr")


def points(scale: str) -> tuple[Point, ...]:
    """All with latents of one size, as many nats where that can be set, and as many epochs."""
    size = {name: AUTOENCODER[name] for name in ("latent", "epochs")}
    short = {"epochs": 2} if scale == "smoke" else {}
    return (
        Point("vae", {**AUTOENCODER, **short}),
        Point("vfae", {**size, **short}),
        Point("lmifr", {**size, "capacity": CAPACITY, **short}),
        Point("filter-linear", few_steps(scale), base=VAE),
        Point("filter", few_steps(scale), base=VAE),
    )


def _scale(_data: str, scale: str) -> Scale:
    parts = (Part(points(scale)),)
    return Scale(parts, EFFORTS[scale], limit=LIMIT.get(scale), warm_start=False, seeds=_SEEDS[scale])


def _table2(_data: str, results: Results) -> list[Row]:
    """Every figure beside the printed one; then the paper's filter and ours less each other method."""
    rows: list[Row] = []
    for result in results:
        kind = result["mechanism"]
        theirs = _PRINTED.get(kind)
        for metric in ("accuracy", "auroc"):
            for setting in SETTINGS:
                printed = (
                    PAPER.figure("Table 2", theirs, f"private {metric}") if theirs and setting == "paper" else None
                )
                name = f"{kind}: sex {metric}, {READER[setting]}"
                rows.append(score_row(name, private(result, "sex", setting, metric), paper=printed))
            printed = PAPER.figure("Table 2", theirs, f"utility {metric}") if theirs else None
            rows.append(score_row(f"{kind}: income {metric}", useful(result, "income", metric), paper=printed))
        distortion = moved(result) if kind in ("filter", "filter-linear") else None
        rows += [] if distortion is None else [distortion]
        rows += fairness_rows(result, kind)
    for mine in ("filter-linear", "filter"):
        rows += [row for other in _OTHERS for row in _against(results, mine, other)]
    return rows + _fairer(results)


def _against(results: Results, mine: str, other: str) -> list[Row]:
    """Sex lower and income comparable; only the paper's own filter is put to its claims."""
    (ours,), (theirs,) = points_of(results, mine), points_of(results, other)
    rows = []

    def asked(claim: str, side: Any, bound: float, setting: Setting = "paper") -> Asked | None:
        return Asked(claim, side, bound, setting) if mine == "filter-linear" else None

    for setting in SETTINGS:
        lower = asked("filter-adult-lowest", "below", 0.0, setting)
        pair = (ours, private(ours, "sex", setting)), (theirs, private(theirs, "sex", setting))
        rows.append(paired(f"{mine} less {other}: sex accuracy, {READER[setting]}", *pair, better="lower", asked=lower))
        areas = private(ours, "sex", setting, "auroc"), private(theirs, "sex", setting, "auroc")
        rows.append(apart(f"{mine} less {other}: sex auroc, {READER[setting]}", *areas, better="lower", asked=lower))
    use = (ours, useful(ours, "income")), (theirs, useful(theirs, "income"))
    comparable = asked("filter-adult-utility", "above", _gap("accuracy"))
    rows.append(paired(f"{mine} less {other}: income accuracy", *use, better="higher", asked=comparable))
    areas = useful(ours, "income", "auroc"), useful(theirs, "income", "auroc")
    comparable = asked("filter-adult-utility", "above", _gap("auroc"))
    rows.append(apart(f"{mine} less {other}: income auroc", *areas, better="higher", asked=comparable))
    return rows


def _gap(metric: str) -> float:
    """What the paper calls comparable: its own figure less the best of the others."""
    column = f"utility {metric}"
    best = max(PAPER.figure("Table 2", _PRINTED[other], column) for other in _OTHERS)
    return round(PAPER.figure("Table 2", "Ours", column) - best, 3)


def _parity(result: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """How differently often a receiver's classifier gives women and men a high income; None in an earlier audit."""
    found = (s for s in result.get("fairness", ()) if s["primary"] and (s["metric"], s["group"]) == (PARITY, "sex"))
    return next(found, None)


def _fairer(results: Results) -> list[Row]:
    """§4: every method's gap in demographic parity less the raw latent's; only the paper's filter is asked."""
    before = _parity(raw(results))
    rows = []
    for result in results:
        kind, after = result["mechanism"], _parity(result)
        if kind != "vae" and before is not None and after is not None:
            asked = Asked("filter-fair", "below", 0.0) if kind == "filter-linear" else None
            name = f"{kind} less vae: demographic parity gap, income by sex"
            rows.append(apart(name, after, before, better="lower", asked=asked))
    return rows


STUDIES = (
    Study(
        name="filter-table2",
        family="filter",
        title="Filter, Table 2: Adult, hide sex and serve income",
        about="All methods have latents of 20 numbers, 30 epochs, and as many nats where that can be set (17.4). "
        "Accuracies are compared over the same victims; AUROC and the gaps between women and men, which are no means "
        "over records, by both intervals. Gaps are of the classifier that a receiver trains for income.",
        data={"adult": {"utility": ["income"], "private": ["sex"]}},
        scale=_scale,
        rows=_table2,
        claims=("filter-adult-lowest", "filter-adult-utility", "filter-fair"),
    ),
)
