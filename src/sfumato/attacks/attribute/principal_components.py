"""Principal components of payloads so wide that neither all of them nor all records are looked at."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from sfumato.core.dataset import FloatArray

VERY_WIDE = 4096
"""Numbers in a payload from which on components are learnt from a part of the records."""
_LEARNT_FROM = 1000
_AT_ONCE = 512


class Narrowed(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Standardised columns in their leading principal components, learnt from at most 1,000 rows, in float32."""

    def __init__(self, *, components: int = 64, seed: int = 0) -> None:
        self.components = components
        self.seed = seed

    def fit(self, features: FloatArray, labels: object = None) -> Self:
        rows = np.sort(np.random.default_rng(self.seed).permutation(len(features))[:_LEARNT_FROM])
        part = features[rows]
        self.mean_ = part.mean(axis=0, dtype=np.float64).astype(np.float32)
        part -= self.mean_
        deviation = np.sqrt(np.einsum("nf,nf->f", part, part) / len(part))
        scale = np.where(deviation > 0, deviation, 1.0).astype(np.float32)
        part /= scale
        values, vectors = np.linalg.eigh((part @ part.T).astype(np.float64))
        count = min(self.components, len(part) - 1) or 1
        leading = vectors[:, ::-1][:, :count] / np.sqrt(np.maximum(values[::-1][:count], 1e-12))
        self.axes_ = (part.T @ leading.astype(np.float32)) / scale[:, None]  # (F, count)
        return self

    def transform(self, features: FloatArray) -> FloatArray:
        offset = self.mean_ @ self.axes_
        narrow = np.empty((len(features), self.axes_.shape[1]), dtype=np.float32)
        for start in range(0, len(features), _AT_ONCE):
            narrow[start : start + _AT_ONCE] = features[start : start + _AT_ONCE] @ self.axes_ - offset
        return narrow
