"""Mutual information between points and a label, in nats, from the k nearest neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import IntArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.intervals import Interval
from sfumato.core.metrics import Values

_FOLDS, _DEALS = 5, 4
_FEWEST = 50


def information(
    points: npt.NDArray[Any],
    labels: npt.NDArray[Any],
    ids: npt.NDArray[Any] | None = None,
    *,
    neighbours: int = 5,
) -> tuple[float, Interval]:
    """The estimate of I(points; labels), the mean of ``mutual_information``, and its 95 % interval.

    Records share neighbours, so the standard error of the terms is too small: in simulations with a known answer
    (300 to 1,000 records) a bootstrap of the terms held it in 68 to 95 %. Here the records (whole subjects, where
    ``ids`` repeat) are dealt into 5 disjoint folds. The estimate's variance falls like 1/N, so the variance between
    folds, over 5, is that of the full estimate; it is averaged over 4 deals, and the interval is Student's. It held the
    answer in 91 to 97 %, and in 79 to 96 % where the points all but decide the label and a few confusions count.

    The interval speaks of chance alone, not of the estimator's bias, which in many dimensions is larger. It is not
    clipped at 0.
    """
    if len(points) < _FEWEST:
        raise DataError(f"information: {len(points)} records are too few for an interval, give at least {_FEWEST}.")
    if ids is not None and len(ids) != len(points):
        raise UsageError(f"information: {len(points)} records and {len(ids)} ids, give one id a record.")
    estimate = float(mutual_information(points, labels, neighbours=neighbours).mean())
    half = _half_width(np.asarray(points, dtype=np.float64), np.asarray(labels), ids, neighbours)
    return estimate, (estimate - half, estimate + half)


def mutual_information(points: npt.NDArray[Any], labels: npt.NDArray[Any], *, neighbours: int = 5) -> Values:
    """points (N, d), labels (N,) → one term a record (N,); their mean estimates I(points; labels) in nats.

    Gao, Kannan, Oh and Viswanath 2017, for a label: ρᵢ is the max-norm distance to record i's k-th neighbour *of the
    same label*, k̃ᵢ and nᵢ count the records within ρᵢ of the same and of any label, Nᵢ those of the same label, and

        termᵢ = ψ(k̃ᵢ) + log N − ψ(nᵢ) − ψ(Nᵢ).

    The first two counts leave record i out, except at an atom (ρᵢ = 0, points that coincide), where it is one of the
    atom's draws. k̃ᵢ is k unless distances are tied, and k is at most the label's number of records less one.

    The paper prints log(n + 1) where its authors' program has ψ(n). The difference does not vanish with N: for k = 5
    and two labels the printed form is 0.16 nats too low if they are independent and 0.29 if certain. ψ is used.

    The points are taken as they are: the caller brings the dimensions to one scale. Terms and mean may be negative.
    The estimate is no upper bound: in many dimensions it is too low, and what it misses an attack may find.
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
        raise DataError(f"mutual_information: label {lone} has one record, merge or drop labels with fewer than two.")
    return _terms(x, y, neighbours)


def _terms(x: Values, y: IntArray, neighbours: int) -> Values:
    """The terms; 0 for a label's only record, which a fold may have."""
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


def _half_width(x: Values, y: IntArray, ids: npt.NDArray[Any] | None, neighbours: int) -> float:
    """Student's half width, from the variance between disjoint folds of whole subjects."""
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
        means = [_terms(x[fold == part], y[fold == part], neighbours).mean() for part in range(folds)]
        variances.append(np.var(means, ddof=1) / folds)
    freedom = min(_DEALS * (folds - 1), many - 1)
    return float(t.ppf(0.975, freedom) * np.sqrt(np.mean(variances)))
