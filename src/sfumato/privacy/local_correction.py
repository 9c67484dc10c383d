"""Mutual information with local non-uniformity correction (Gao, Ver Steeg and Galstyan 2015), in nats.

The estimator that the `filter` paper cites. Where points lie along a thin sheet, the box around the nearest neighbours
is mostly empty, and the plain estimator is far too low; here the box is turned into the neighbours' own axes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import IntArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.metrics import Values
from sfumato.privacy.mutual_information import mutual_information

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
    near = x[_nearest(x, neighbours)]  # (N, k, d)
    reach = np.abs(near - x[:, None]).max(axis=1)
    terms = digamma(neighbours) - (d - 1) / neighbours + (d - 1) * digamma(n) - _correction(x, near)
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

    The published estimator is for numbers; a label is one only by name. For a label the plain estimator is
    ``mutual_information``, with as many neighbours, which compares how many records of one label and of any lie in the
    same cube. What corrects it is how thin both sets are there,

        termᵢ = mutual_informationᵢ − log(V̄ᵢ/Vᵢ)|same label + log(V̄ᵢ/Vᵢ)|any label,

    by the k nearest neighbours of the same label, and by the outermost of them with k − 1 records of any label drawn
    from their cube. With equally many in the same cube both corrections are alike where the label says nothing,
    and equal where it says everything. A label with k records or fewer is not corrected, a lone record has the term 0.
    Terms and mean may be negative.
    """
    x, y = _apart(np.asarray(points, dtype=np.float64)), np.asarray(labels)
    k = neighbours_for(x.shape[1]) if neighbours is None else neighbours
    counts = np.unique(y, return_inverse=True, return_counts=True)
    several = counts[2][counts[1]] > 1
    terms = np.zeros(len(x))
    if several.any():
        terms[several] = mutual_information(x[several], y[several], neighbours=k)
    if not 1 < x.shape[1] <= k:
        return terms
    rng = np.random.default_rng(0)
    for label in np.unique(y):
        mine = np.flatnonzero(y == label)
        if len(mine) > k:
            same = mine[_nearest(x[mine], k)]  # (n, k), the outermost last
            drawn = _drawn_from_cubes(x, mine, same[:, -1], k, rng)
            terms[mine] += _correction(x[mine], x[drawn]) - _correction(x[mine], x[same])
    return terms


def _apart(x: Values) -> Values:
    """The same points, no two of them in one place."""
    return np.asarray(x + _JITTER * np.random.default_rng(0).random(x.shape))


def _nearest(x: Values, k: int) -> IntArray:
    """The k nearest neighbours of each record in the max norm, the nearest first, without itself: (N, k)."""
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(x).query(x, k=k + 1, p=np.inf)[1][:, 1:])


def _drawn_from_cubes(x: Values, rows: IntArray, outermost: IntArray, k: int, rng: np.random.Generator) -> IntArray:
    """For each of ``rows`` its ``outermost`` neighbour, and k − 1 of the other records in the cube up to it: (n, k)."""
    from scipy.spatial import cKDTree

    radius = np.abs(x[outermost] - x[rows]).max(axis=1)
    inside = cKDTree(x).query_ball_point(x[rows], radius, p=np.inf)
    drawn = np.empty((len(rows), k), dtype=np.int64)
    for place, (row, last, found) in enumerate(zip(rows, outermost, inside, strict=True)):
        others = np.array([one for one in found if one not in (row, last)])
        drawn[place] = [*rng.permutation(others)[: k - 1], last]
    return drawn


def _correction(x: Values, neighbours: Values) -> Values:
    """log(V̄/V) of each record's neighbours (N, k, d) where it is below log α, else 0, (N,)."""
    _, k, d = neighbours.shape
    found = np.empty(len(x))
    for start in range(0, len(x), _BLOCK):
        rows = slice(start, start + _BLOCK)
        offsets = neighbours[rows] - x[rows, None]
        ratio = _turned(offsets) - np.log(np.abs(offsets).max(axis=1)).sum(axis=1)
        found[rows] = np.where(ratio < _log_alpha(k, d), ratio, 0.0)
    return found


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
