"""Utility labels as numbers that an attacker can reckon with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.schema import Schema


def one_hot(labels: Mapping[str, IntArray], schema: Schema) -> FloatArray:
    """The utility labels of N records side by side, (N, all classes)."""
    parts = [np.eye(len(classes), dtype=np.float32)[labels[name]] for name, classes in schema.utility.items()]
    return np.concatenate(parts, axis=1)


def beside(payload: FloatArray, labels: Mapping[str, IntArray], schema: Schema) -> FloatArray:
    """Payloads (N, C, …) with a constant channel for each class of the utility labels, (N, C + k, …)."""
    codes = one_hot(labels, schema)
    shape = (*codes.shape, *payload.shape[2:])
    planes = np.broadcast_to(codes.reshape(*codes.shape, *(1,) * (payload.ndim - 2)), shape)
    return np.concatenate([payload, planes], axis=1)


def mean_of_same_labels(labels: Mapping[str, IntArray], own: Dataset, values: FloatArray) -> FloatArray:
    """For each record the mean of ``values`` (one an own record) over the own records with the same utility labels.

    The mean of all counts as one record more, so that labels never seen together get that.
    """
    sizes = [len(classes) for classes in own.schema.utility.values()]
    wanted = np.ravel_multi_index([labels[name] for name in own.schema.utility], sizes)
    known = np.ravel_multi_index([own.utility[name] for name in own.schema.utility], sizes)
    cells, places = np.unique(np.concatenate([known, wanted]), return_inverse=True)
    mean = values.mean(axis=0, dtype=np.float64)
    sums = np.broadcast_to(mean, (len(cells), *mean.shape)).copy()
    np.add.at(sums, places[: len(known)], values)
    counts = 1.0 + np.bincount(places[: len(known)], minlength=len(cells))
    means = sums / counts.reshape(-1, *(1,) * mean.ndim)
    return np.asarray(means[places[len(known) :]], dtype=np.float32)


def labels_missing(knowledge: Knowledge) -> str | None:
    return None if knowledge.auxiliary.utility else "needs utility labels that leave with the release"
