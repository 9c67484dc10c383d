"""Rows from which test records a model gets right: accuracies, and differences over the same records."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.core.errors import RuleBroken
from sfumato.core.intervals import mean_interval, share_interval
from sfumato.studies.rows import Row
from sfumato.studies.verdicts import Asked

Right = npt.NDArray[np.bool_]
"""(N,): whether each test record is right, always in the same order."""


def accuracy_row(name: str, right: Right, *, paper: float | None = None, majority: float | None = None) -> Row:
    """The share of test records that are right."""
    hits = right.astype(np.float64)
    return Row(
        name,
        "accuracy",
        "higher",
        paper,
        float(hits.mean()),
        share_interval(hits),
        n=len(hits),
        majority=majority,
    )


def less_row(name: str, right: Right, other: Right, *, asked: Asked | None = None) -> Row:
    """How much more often ``right`` is right than ``other``, over the same test records."""
    each = paired(right, other)
    return Row(name, "accuracy", "higher", None, float(each.mean()), mean_interval(each), asked=asked, n=len(each))


def paired(right: Right, other: Right) -> npt.NDArray[np.float64]:
    """The difference of each test record."""
    if right.shape != other.shape:
        raise RuleBroken("two models were not tested on the same records, so there is no paired difference.")
    return np.asarray(right.astype(np.float64) - other)
