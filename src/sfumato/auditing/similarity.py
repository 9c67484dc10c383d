"""How alike two sets of records are: marginals of coded columns, and where vectors lie."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray
from sfumato.core.metrics import Values

Codes = npt.NDArray[np.int64]


def shape_likeness(real: Codes, other: Codes, sizes: Sequence[int]) -> float:
    """1 − ½Σ|p − q| of each column's values, averaged over the columns of (N, columns) codes; 1 for equal shares.

    This is SDMetrics' column shapes, with numbers cut into intervals.
    """
    return float(np.mean([_overlap(real[:, i], other[:, i], size) for i, size in enumerate(sizes)]))


def trend_likeness(real: Codes, other: Codes, sizes: Sequence[int], most: int = 200) -> float:
    """The same for the joint values of pairs of columns (SDMetrics' column pair trends); ``most`` pairs at most."""
    pairs = list(combinations(range(len(sizes)), 2))
    if not pairs:
        return shape_likeness(real, other, sizes)
    chosen = np.random.default_rng(0).permutation(len(pairs))[:most]
    found = []
    for i, j in (pairs[place] for place in chosen):
        both, others = (codes[:, i] * sizes[j] + codes[:, j] for codes in (real, other))
        found.append(_overlap(both, others, sizes[i] * sizes[j]))
    return float(np.mean(found))


def frechet_distance(real: Values, other: Values) -> float:
    """‖μ₁ − μ₂‖² + tr(Σ₁ + Σ₂ − 2(Σ₁Σ₂)^½) of the vectors' means and covariances (Heusel et al. 2017), at least 0.

    tr (Σ₁Σ₂)^½ is the sum of the singular values of Σ₁^½ Σ₂^½.
    """
    means = real.mean(axis=0) - other.mean(axis=0)
    roots, traces = [], 0.0
    for vectors in (real, other):
        centred = (vectors - vectors.mean(axis=0)) / np.sqrt(max(1, len(vectors) - 1))
        values, axes = np.linalg.eigh(centred.T @ centred)
        values = np.maximum(values, 0.0)
        roots.append((axes * np.sqrt(values)) @ axes.T)
        traces += float(values.sum())
    both = float(np.linalg.svd(roots[0] @ roots[1], compute_uv=False).sum())
    return max(0.0, float(means @ means) + traces - 2.0 * both)


def inside(points: Values, manifold: Values, neighbours: int = 3) -> Values:
    """1 for each point that lies within the distance of some manifold point to its k-th neighbour there.

    Kynkäänniemi et al. 2019: the mean is the precision of synthetic points in the real manifold, and the recall the
    other way round.
    """
    from sklearn.neighbors import NearestNeighbors

    k = min(neighbours + 1, len(manifold))  # a manifold point is its own first neighbour
    radii = NearestNeighbors(n_neighbors=k).fit(manifold).kneighbors(manifold)[0][:, -1]
    sizes = (manifold**2).sum(axis=1)
    found = np.empty(len(points))
    for start in range(0, len(points), 512):
        part = points[start : start + 512]
        squared = (part**2).sum(axis=1)[:, None] + sizes[None, :] - 2.0 * part @ manifold.T
        found[start : start + 512] = (squared <= radii[None, :] ** 2 + 1e-9).any(axis=1)
    return found


def contrasts(pictures: FloatArray) -> Values:
    """The RMS contrast of each picture (N, C, H, W): the standard deviation of its pixels."""
    return np.asarray(pictures.reshape(len(pictures), -1).std(axis=1), dtype=np.float64)


def dynamic_ranges(pictures: FloatArray) -> Values:
    """The brightest pixel of each picture (N, C, H, W) less the darkest."""
    return np.asarray(np.ptp(pictures.reshape(len(pictures), -1), axis=1), dtype=np.float64)


def nearest_rows(samples: FloatArray, among: FloatArray) -> npt.NDArray[np.intp]:
    """The place of the record nearest to each sample, by Euclidean distance."""
    flat, points = among.reshape(len(among), -1), samples.reshape(len(samples), -1)
    sizes = (flat**2).sum(axis=1)
    blocks = [points[start : start + 512] for start in range(0, len(points), 512)]
    return np.concatenate([(sizes[None, :] - 2.0 * block @ flat.T).argmin(axis=1) for block in blocks])


def _overlap(real: Codes, other: Codes, size: int) -> float:
    shares = [np.bincount(codes, minlength=size) / max(1, len(codes)) for codes in (real, other)]
    return float(np.minimum(*shares).sum())
