"""Mutual information with local non-uniformity correction (Gao, Ver Steeg and Galstyan 2015), in nats.

The estimator that the `filter` paper cites. Where points lie along a thin sheet, the box around the nearest neighbours
is mostly empty, and the plain estimator is far too low; here the box is turned into the neighbours' own axes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.errors import DataError, UsageError
from sfumato.core.metrics import Values

_JITTER = 1e-10
"""As in the authors' program: no two records coincide."""
_CUBES, _SHARE = 4000, 0.005
"""Of so many uniform cubes this share counts as non-uniform by mistake (the paper's ε = 5·10⁻³)."""
_BLOCK = 1000


def neighbours_for(columns: int) -> int:
    """How many neighbours span a box in so many dimensions and still leave the PCA something to average."""
    return max(5, 2 * columns)


def multi_information(columns: npt.NDArray[Any], *, neighbours: int = 5) -> Values:
    """One term a record, (N,), whose mean estimates I(x₁; …; x_d) of the columns (N, d) in nats.

    With the k nearest neighbours in the max norm, rᵢⱼ their largest distance in column j, nᵢⱼ the records within it,

        termᵢ = ψ(k) − (d − 1)/k + (d − 1)·ψ(N) − Σⱼ ψ(nᵢⱼ) − log(V̄ᵢ/Vᵢ),

    where Vᵢ = Πⱼ rᵢⱼ is the neighbours' box and V̄ᵢ their box along the principal axes around record i. The last term
    counts only where V̄ᵢ/Vᵢ < α; α is what uniform cubes fall short of once in 200 times.
    """
    from scipy.special import digamma

    x = np.asarray(columns, dtype=np.float64)
    if x.ndim != 2 or not np.isfinite(x).all():
        raise DataError(f"multi_information: columns must be a finite table (N, d), got shape {x.shape}.")
    n, d = x.shape
    if not d <= neighbours < n:
        raise UsageError(
            f"multi_information: neighbours={neighbours} must be at least d = {d}, to span a box, and below N = {n}."
        )
    if d == 1:
        return np.zeros(n)
    x = _apart(x)
    reach, correction = _boxes(x, neighbours)
    terms = digamma(neighbours) - (d - 1) / neighbours + (d - 1) * digamma(n) - correction
    for column in range(d):
        values = np.sort(x[:, column])
        low = np.searchsorted(values, x[:, column] - reach[:, column], side="left")
        high = np.searchsorted(values, x[:, column] + reach[:, column], side="right")
        terms -= digamma(np.maximum(high - low - 1, 1))  # without the record itself
    return np.asarray(terms)


def corrected_information(
    points: npt.NDArray[Any], labels: npt.NDArray[Any], *, neighbours: int | None = None
) -> Values:
    """One term a record, (N,), whose mean estimates I(points; labels) in nats; points (N, d), labels (N,).

    The published estimator is for numbers; a label is one only by name. So the information is taken as what the label
    leaves of the points' entropy, H(x) − H(x|y), and both entropies have the correction, by the same boxes:

        termᵢ = ψ(N) + log V̄ᵢ|any label − ψ(Nᵢ) − log V̄ᵢ|same label,

    where V̄ᵢ is the box of the k nearest neighbours of any label, or of the same one (Nᵢ records have it). A class with
    fewer than k + 1 records is looked at with fewer neighbours, a lone record has the term 0. Terms and mean may be
    negative, and above the label's entropy.
    """
    from scipy.special import digamma

    x, y = _apart(np.asarray(points, dtype=np.float64)), np.asarray(labels)
    k = neighbours_for(x.shape[1]) if neighbours is None else neighbours
    terms = digamma(len(x)) + _log_volume(x, k)
    for label in np.unique(y):
        mine = y == label
        many = int(mine.sum())
        terms[mine] = terms[mine] - digamma(many) - _log_volume(x[mine], k) if many > 1 else 0.0
    return np.asarray(terms)


def _apart(x: Values) -> Values:
    """The same points, no two of them in one place."""
    return np.asarray(x + _JITTER * np.random.default_rng(0).random(x.shape))


def _log_volume(x: Values, k: int) -> Values:
    """log V̄ − ψ(k) of each record's k nearest neighbours, (N,): their cube, times V̄/V of their box where it is thin."""
    from scipy.special import digamma

    k = min(k, len(x) - 1)
    reach, correction = _boxes(x, k)
    return np.asarray(np.log(reach.max(axis=1)) * x.shape[1] + correction - digamma(k))


def _boxes(x: Values, k: int) -> tuple[Values, Values]:
    """The k nearest neighbours' reach in each column, (N, d), and log(V̄/V) where it is below log α, else 0, (N,)."""
    from scipy.spatial import cKDTree

    n, d = x.shape
    nearest = cKDTree(x).query(x, k=k + 1, p=np.inf)[1][:, 1:]  # (N, k), without the record itself
    reach, correction = np.empty((n, d)), np.zeros(n)
    for start in range(0, n, _BLOCK):
        rows = slice(start, start + _BLOCK)
        offsets = x[nearest[rows]] - x[rows, None]  # (B, k, d)
        reach[rows] = np.abs(offsets).max(axis=1)
        if 1 < d <= k:
            ratio = _turned(offsets) - np.log(reach[rows]).sum(axis=1)
            correction[rows] = np.where(ratio < _log_alpha(k, d), ratio, 0.0)
    return reach, correction


def _turned(offsets: Values) -> Values:
    """log V̄ of neighbours' offsets from their record (B, k, d): the box along their principal axes, (B,)."""
    axes = np.linalg.eigh(np.einsum("bki,bkj->bij", offsets, offsets))[1]  # (B, d, d), axes in columns
    extent = np.abs(np.einsum("bki,bij->bkj", offsets, axes)).max(axis=1)
    return np.asarray(np.log(np.maximum(extent, 1e-300)).sum(axis=1))


@cache
def _log_alpha(neighbours: int, d: int) -> float:
    """log α: the 0.5 % quantile of V̄/V for uniform points in a cube."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(0, _CUBES, _BLOCK):
        cube = rng.uniform(-1.0, 1.0, (_BLOCK, neighbours, d))
        found.append(_turned(cube) - np.log(np.abs(cube).max(axis=1)).sum(axis=1))
    return float(np.quantile(np.concatenate(found), _SHARE))
