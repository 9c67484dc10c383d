"""What a party gets without the others, in every study of `ars` that reports an accuracy, and what the pool adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.auditing.alone import ALONE_RAW, ALONE_SHARE, INITIATOR
from sfumato.auditing.utility import CLEAN, FRESH
from sfumato.studies.ars_base import FIFTY, difference_row, is_variant
from sfumato.studies.rows import Results, Row, score_row
from sfumato.studies.verdicts import Asked

_ASKED_AT = (0.0, FIFTY)
"""Without noise, where a pool gains most, and at the noise that the paper settles for."""


def accuracy_by(result: Mapping[str, Any], who: str, label: str | None = None) -> Mapping[str, Any] | None:
    """The accuracy of one learner for a utility label (None: the only one)."""
    scores = (s for s in result["utility"] if s["attack"] == who and s["metric"] == "accuracy")
    return next((s for s in scores if label is None or s["target"] == label), None)


def alone_rows(results: Results, *, name: str = "", label: str | None = None, unless: str = "") -> list[Row]:
    """Of points with the same parties and records: the party on its raw records (once: it sees no release), on its own
    share and on its own clean latents, and the pool less the first of these, over the same victims.

    The pool's classifier is tested as a party uses it: by rows on its own, clean latents; by columns, where the others'
    latents of a record come protected, on protected ones. ``name`` comes before every row's. Points of which nobody
    shares with anybody have no rows.
    """
    rows: list[Row] = []
    for result in results:
        by_columns = result["params"].get("split") == "columns"
        raw, pool = (accuracy_by(result, who, label) for who in (ALONE_RAW, FRESH if by_columns else CLEAN))
        if raw is None or pool is None:
            continue
        if not rows:
            rows.append(score_row(f"{name}a party {ALONE_RAW}", raw))
        point = f"{name}{result['point']}"
        for who, told in ((ALONE_SHARE, f"a party {ALONE_SHARE}"), (INITIATOR, f"{INITIATOR}, on its clean latents")):
            score = accuracy_by(result, who, label)
            if score is not None:
                rows.append(score_row(f"{point}: {told}", score))
        params = result["params"]
        put = is_variant(result, "published") and params.get("masked", True) and params["epsilon"] in _ASKED_AT
        asked = Asked("ars-more-data", "above", 0.0, unless=unless) if put else None
        where = "protected latents" if by_columns else "a party's own, clean latents"
        told = f"{point}: pool, on {where}, less a party alone on its raw records"
        rows.append(difference_row(told, (result, pool), (result, raw), asked))
    return rows
