"""Mutual information between points and a label, in nats, estimated from k nearest neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import IntArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.intervals import Interval
from sfumato.core.metrics import Values

Terms = Callable[[Values, IntArray], Values]
"""Points (N, d) and labels (N,) → one term a record, whose mean estimates their information."""

_FOLDS, _DEALS = 5, 4
_FEWEST = 50


def information(
    points: npt.NDArray[Any],
    labels: npt.NDArray[Any],
    ids: npt.NDArray[Any] | None = None,
    *,
    neighbours: int = 5,
    terms: Terms | None = None,
) -> tuple[float, Interval]:
    """Estimate I(points; labels) as the mean of ``terms`` (by default ``mutual_information``), with a 95 % interval.

    Records share neighbours, so the standard error of the terms is too small: in simulations with a known answer (300
    to 1,000 records), a bootstrap of the terms covered it in 68 to 95 % of cases. Here the records (whole subjects, if
    ``ids`` repeat) are divided into 5 disjoint folds. The variance of the estimate falls like 1/N, so the variance
    between folds, divided by 5, is that of the full estimate. It is averaged over 4 divisions into folds, and gives a
    Student interval. This covered the answer in 91 to 97 % of cases, and in 79 to 96 % where the points nearly
    determine the label and a few confusions matter.

    The interval reflects sampling error only, not the estimator's bias, which is larger in many dimensions. It is not
    clipped at 0.
    """
    if len(points) < _FEWEST:
        raise DataError(f"information: {len(points)} records are too few for an interval: give at least {_FEWEST}.")
    if ids is not None and len(ids) != len(points):
        raise UsageError(f"information: got {len(points)} records and {len(ids)} ids: give one id per record.")
    x, y = np.asarray(points, dtype=np.float64), np.asarray(labels)
    if terms is None:
        estimate = float(mutual_information(points, labels, neighbours=neighbours).mean())
        half = _half_width(x, y, ids, lambda x, y: _terms(x, y, neighbours))
    else:
        estimate, half = float(terms(x, y).mean()), _half_width(x, y, ids, terms)
    return estimate, (estimate - half, estimate + half)


def mutual_information(points: npt.NDArray[Any], labels: npt.NDArray[Any], *, neighbours: int = 5) -> Values:
    """Return one term per record, (N,), whose mean estimates I(points; labels) in nats; points (N, d), labels (N,).

    The estimator is that of Gao, Kannan, Oh and Viswanath 2017, for a label: ρᵢ is the max-norm distance to record i's
    k-th neighbour *with the same label*; k̃ᵢ and nᵢ count the records within ρᵢ that have the same label and any label;
    Nᵢ counts all records with the same label; and

        termᵢ = ψ(k̃ᵢ) + log N − ψ(nᵢ) − ψ(Nᵢ).

    The first two counts leave out record i, except at an atom (ρᵢ = 0, coinciding points), where it counts as one of
    the atom's draws. k̃ᵢ = k unless distances are tied, and k is at most one less than the label's number of records.

    The paper prints log(n + 1) where its authors' program has ψ(n). The difference does not vanish with N: for k = 5
    and two labels, the printed form is 0.16 nats too low if points and label are independent, and 0.29 if the points
    determine the label. ψ is used here.

    The points are used as they are, so the caller has to scale the dimensions. Terms and mean may be negative. The
    estimate is not an upper bound: in many dimensions it is too low, and an attack may find what it misses.
    """
    x, y = np.asarray(points, dtype=np.float64), np.asarray(labels)
    if neighbours < 1:
        raise UsageError(f"mutual_information: neighbours must be at least 1, got {neighbours!r}.")
    if x.ndim != 2 or y.shape != x.shape[:1] or len(x) == 0:
        raise UsageError(f"mutual_information: points {x.shape} and labels {y.shape} must be (N, d) and (N,), N > 0.")
    if not np.isfinite(x).all():
        raise DataError("mutual_information: points must be finite, found NaN or infinity.")
    values, counts = np.unique(y, return_counts=True)
    if counts.min() < 2:
        lone = values[counts.argmin()]
        raise DataError(f"mutual_information: label {lone} has one record: merge or drop labels with fewer than two.")
    return _terms(x, y, neighbours)


def _terms(x: Values, y: IntArray, neighbours: int) -> Values:
    """Compute the terms; 0 if a record is the only one of its label, as may happen in a fold."""
    from scipy.spatial import cKDTree
    from scipy.special import digamma

    everything = cKDTree(x)
    terms = np.zeros(len(x))
    for label in np.unique(y):
        mine = np.flatnonzero(y == label)
        if len(mine) == 1:
            continue
        same, here = cKDTree(x[mine]), x[mine]
        radius = same.query(here, k=[min(neighbours, len(mine) - 1) + 1], p=np.inf)[0][:, 0]  # the first is itself
        itself = radius > 0
        k = same.query_ball_point(here, radius, p=np.inf, return_length=True) - itself
        n = everything.query_ball_point(here, radius, p=np.inf, return_length=True) - itself
        terms[mine] = digamma(k) + np.log(len(x)) - digamma(n) - digamma(len(mine))
    return terms


def _half_width(x: Values, y: IntArray, ids: npt.NDArray[Any] | None, terms: Terms) -> float:
    """Return the half width of the Student interval, from the variance between disjoint folds of subjects."""
    from scipy.stats import t

    subjects = np.arange(len(x)) if ids is None else np.unique(ids, return_inverse=True)[1]
    many = int(subjects.max()) + 1
    if many == 1:
        subjects, many = np.arange(len(x)), len(x)
    folds = min(_FOLDS, many)
    rng = np.random.default_rng(0)
    variances = []
    for _ in range(_DEALS):
        fold = (rng.permutation(many) % folds)[subjects]
        means = [terms(x[fold == part], y[fold == part]).mean() for part in range(folds)]
        variances.append(np.var(means, ddof=1) / folds)
    freedom = min(_DEALS * (folds - 1), many - 1)
    return float(t.ppf(0.975, freedom) * np.sqrt(np.mean(variances)))
