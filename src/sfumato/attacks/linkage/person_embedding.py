"""An embedding in which the records of one person lie together, learnt from people of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Likeness
from sfumato.core.metrics import Values

Embedding = Callable[[FloatArray], FloatArray]
"""Records or payloads (N, …) → (N, k)."""

_COMPONENTS = 64
_SHRUNK = 0.1
"""Share of the mean variance in the covariance within people: few people give a poor estimate of it."""


def repeated(ids: npt.NDArray[Any]) -> bool:
    """Whether some subject has two records."""
    return len(np.unique(ids)) < len(ids)


def fit_embedding(x: FloatArray, ids: npt.NDArray[Any], seed: int) -> Embedding:
    """Principal components, centred, and whitened by the covariance within people (Fisherfaces, WCCN).

    e(x) = W^−½·P·(x − mean): a direction in which one person's records differ much counts little.
    """
    from sklearn.decomposition import PCA

    flat = x.reshape(len(x), -1)
    few = max(1, min(_COMPONENTS, len(flat) - 1, flat.shape[1]))
    narrow = PCA(few, svd_solver="randomized", random_state=seed % 2**32).fit(flat)
    points = narrow.transform(flat)  # (N, k)
    person = np.unique(ids, return_inverse=True)[1]
    means = np.stack([np.bincount(person, column) for column in points.T], axis=1) / np.bincount(person)[:, None]
    apart = points - means[person]
    within = apart.T @ apart / len(points)
    within = (1.0 - _SHRUNK) * within + _SHRUNK * max(float(np.trace(within)) / few, 1e-12) * np.eye(few)
    values, vectors = np.linalg.eigh(within)
    whiten = vectors / np.sqrt(values)

    def embed(records: FloatArray) -> FloatArray:
        return np.asarray(narrow.transform(records.reshape(len(records), -1)) @ whiten, dtype=np.float32)

    return embed


def person_likeness(embed: Embedding, people: Dataset) -> Likeness:
    """cos(e(guess), mean e of the same person's other records): how much a rebuilt record looks like its person."""
    known, row = np.unique(people.ids, return_inverse=True)
    every = _unit(embed(people.x))
    sums = np.zeros((len(known), every.shape[1]))
    np.add.at(sums, row, every)

    def likeness(victim: Dataset, guess: FloatArray) -> Values:
        others = sums[np.searchsorted(known, victim.ids)] - _unit(embed(victim.x))
        return np.asarray((_unit(embed(guess)) * _unit(others)).sum(axis=1), dtype=np.float64).clip(-1.0, 1.0)

    return likeness


def _unit(rows: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float64]:
    """Rows of length one; a row of zeros stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 1e-6, lengths, 1.0), dtype=np.float64)
