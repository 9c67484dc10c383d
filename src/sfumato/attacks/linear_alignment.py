"""The linear map between two views of the same records, in closed form, from the few pairs that an attacker has.

ALGEN (arXiv 2502.11308) aligns embeddings of an unknown encoder to those of a known one by least squares from few
pairs. With a ridge whose weight is chosen by leaving each pair out, that needs no training and no query.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.attacks.decoder_training import affordable
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Knowledge

Doubles = npt.NDArray[np.float64]

WEIGHTS = tuple(10.0**power for power in range(-6, 3))
"""Of the ridge, in units of the mean variance of an input number."""
_MANY, _FEW, _NARROW = 4_000, 1_000, 512
"""Pairs that are read of views of up to 512 numbers, and of wider ones: the map costs the cube of their number."""
_JUDGED_BY = 64
"""Numbers of the view that is sought by which the weight is chosen."""
_FLOOR = 1e-3
"""Share of the mean residual variance that every direction keeps."""
_COMPONENTS = 256
_PROBED = 64
"""Records whose payloads say how wide a payload is: some pipelines take no fewer."""


def own_pairs(knowledge: Knowledge) -> tuple[FloatArray, Dataset]:
    """Payloads (N, F) of some of the attacker's own records, and the records."""
    query, own = knowledge.query, knowledge.auxiliary
    assert query is not None  # an attack's obstacle() has seen to it
    size = query(own.take(slice(0, _PROBED)))[0].size
    few = own.take(slice(0, affordable(_pairs_read(size), size + own.x[0].size)))
    return query(few).reshape(len(few), -1), few


def _pairs_read(numbers: int) -> int:
    return _MANY if numbers <= _NARROW else _FEW


@dataclass(frozen=True)
class Alignment:
    """b ≈ mean_b + (a − mean_a)·W.

    ``whiten`` brings what is left over, on pairs that were left out, to deviation 1: a matrix (G, K), or one factor for
    each number, (G,).
    """

    mean_a: Doubles
    mean_b: Doubles
    weights: Doubles
    whiten: Doubles

    def __call__(self, points: FloatArray) -> Doubles:
        """What the linear map makes of views a, (N, F) → (N, G)."""
        return np.asarray((points - self.mean_a) @ self.weights + self.mean_b)

    def whitened(self, points: Doubles) -> Doubles:
        """Views b, (N, G), in units of what the linear map leaves over."""
        return np.asarray(points * self.whiten if self.whiten.ndim == 1 else points @ self.whiten)


def fit_alignment(a: FloatArray, b: FloatArray, seed: int) -> Alignment:
    """The ridge regression of views b (N, G) on views a (N, F) of the same records.

    The weight of the ridge is that of least squared error on pairs left out one by one, which the singular values of a
    give without another fit; with the largest weight all answers are about the mean.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(a))[: _pairs_read(a.shape[1])]
    x, y = a[order].astype(np.float64), b[order].astype(np.float64)
    mean_a, mean_b = x.mean(axis=0), y.mean(axis=0)
    x, y = x - mean_a, y - mean_b
    left, values, right = np.linalg.svd(x, full_matrices=False)  # x = L·diag(s)·R
    unit = max(float((x**2).mean()) * len(x), 1e-12)
    judged = y[:, rng.permutation(y.shape[1])[:_JUDGED_BY]]
    shares = [values**2 / (values**2 + weight * unit) for weight in WEIGHTS]
    kept = min(shares, key=lambda share: float((_left_out(left, share, judged) ** 2).mean()))
    inverse = np.divide(kept, values, out=np.zeros_like(values), where=values > 1e-12)
    weights = right.T @ (inverse[:, None] * (left.T @ y))
    return Alignment(mean_a, mean_b, weights, _whitening(_left_out(left, kept, y)))


def _left_out(left: Doubles, kept: Doubles, y: Doubles) -> Doubles:
    """The error at each pair of the ridge that was fitted to all others."""
    leverage = np.minimum((left**2 * kept).sum(axis=1) + 1.0 / len(y), 1.0 - 1e-6)
    return np.asarray((y - left @ (kept[:, None] * (left.T @ y))) / (1.0 - leverage)[:, None])


def _whitening(residual: Doubles) -> Doubles:
    """W with W·Wᵀ the inverse of the residuals' covariance: of vectors with many numbers only each variance."""
    if residual.shape[1] > min(_COMPONENTS, len(residual) // 2):
        variance = (residual**2).mean(axis=0)
        return np.asarray(1.0 / np.sqrt(variance + _FLOOR * max(float(variance.mean()), 1e-12)))
    covariance = residual.T @ residual / len(residual)
    covariance += _FLOOR * max(float(np.trace(covariance)) / len(covariance), 1e-12) * np.eye(len(covariance))
    spread, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors / np.sqrt(spread))
