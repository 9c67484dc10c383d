"""Utility labels as numbers that an attacker can reckon with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.schema import Schema

_PARTS = 16


def side_by_side(labels: Mapping[str, IntArray], schema: Schema) -> FloatArray:
    """The utility labels of N records side by side, (N, all classes): one-hot, or a number as a share of its range."""

    def column(name: str) -> FloatArray:
        if name in schema.numbers:
            return schema.numbers[name].unit(labels[name])[:, None]
        return np.eye(len(schema.classes(name)), dtype=np.float32)[labels[name]]

    return np.concatenate([column(name) for name in schema.utility], axis=1)


def beside(payload: FloatArray, labels: Mapping[str, IntArray], schema: Schema) -> FloatArray:
    """Payloads (N, C, …) with a constant channel for each class of the utility labels, (N, C + k, …)."""
    codes = side_by_side(labels, schema)
    shape = (*codes.shape, *payload.shape[2:])
    planes = np.broadcast_to(codes.reshape(*codes.shape, *(1,) * (payload.ndim - 2)), shape)
    return np.concatenate([payload, planes], axis=1)


def mean_of_same_labels(labels: Mapping[str, IntArray], own: Dataset, values: FloatArray) -> FloatArray:
    """For each record the mean of ``values`` (one an own record) over the own records with the same utility labels.

    The mean of all counts as one record more, so that labels never seen together get that. Numbers are the same where
    they are in the same sixteenth of the own records.
    """
    known, wanted = (np.stack([_cells(of, name, own) for name in own.schema.utility]) for of in (own.utility, labels))
    _, places = np.unique(np.concatenate([known, wanted], axis=1), axis=1, return_inverse=True)
    places = places.reshape(-1)
    cells = range(int(places.max()) + 1)
    mean = values.mean(axis=0, dtype=np.float64)
    sums = np.broadcast_to(mean, (len(cells), *mean.shape)).copy()
    np.add.at(sums, places[: len(own)], values)
    counts = 1.0 + np.bincount(places[: len(own)], minlength=len(cells))
    means = sums / counts.reshape(-1, *(1,) * mean.ndim)
    return np.asarray(means[places[len(own) :]], dtype=np.float32)


def _cells(labels: Mapping[str, IntArray], name: str, own: Dataset) -> IntArray:
    """The class of each record, or the sixteenth of the own records that its number is in."""
    if name not in own.schema.numbers:
        return labels[name]
    edges = np.unique(np.quantile(own.utility[name], np.arange(1, _PARTS) / _PARTS))
    return np.searchsorted(edges, labels[name]).astype(np.int64)


def labels_missing(knowledge: Knowledge) -> str | None:
    return None if knowledge.auxiliary.utility else "needs utility labels that leave with the release"
