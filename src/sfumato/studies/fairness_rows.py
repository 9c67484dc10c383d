"""Rows about fairness: how the groups of a private label fare with what a receiver trains on a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.studies.rows import Row, score_row


def fairness_rows(result: Mapping[str, Any], name: str) -> list[Row]:
    """The three differences between groups of a stored result, for each utility and private label.

    They are of the receiver's classifier (the first student of a synthetic release); a result of an earlier audit or
    with too few victims has none. No claim is asked of them: the papers print no such figure.
    """
    return [
        score_row(f"{name}: {score['metric'].replace('-', ' ')}, {score['target']} by {score['group']}", score)
        for score in result.get("fairness", ())
        if score["primary"]
    ]
