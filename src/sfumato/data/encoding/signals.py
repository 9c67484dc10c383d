"""Signals: windows of several channels, each scaled by its range in the training records."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray
from sfumato.data.encoding.list_cells import check_finite, wrong_shape
from sfumato.data.file_errors import Place

Ranges = tuple[tuple[float, float], ...]


def as_windows(values: npt.NDArray[Any], shape: tuple[int, ...], where: Place) -> npt.NDArray[Any]:
    """Reshape cells to ``(rows, channels, samples)`` and check that they are finite."""
    if values.shape[1:] != shape and values.shape[1:] != (int(np.prod(shape)),):
        raise wrong_shape(values.shape[1:], shape, where)
    check_finite(values, where)
    return values.reshape(len(values), *shape)


def widen(ranges: npt.NDArray[np.float64] | None, windows: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Extend the (low, high) range of each channel so that it covers ``windows``."""
    here = np.stack([windows.min(axis=(0, 2)), windows.max(axis=(0, 2))], axis=1).astype(np.float64)
    if ranges is None:
        return here
    return np.stack([np.minimum(ranges[:, 0], here[:, 0]), np.maximum(ranges[:, 1], here[:, 1])], axis=1)


def check_inside(windows: npt.NDArray[Any], ranges: Ranges, where: Place) -> None:
    """Raise unless every sample lies in the declared range of its channel."""
    bounds = np.asarray(ranges, dtype=np.float64)
    outside = (windows < bounds[:, :1]) | (windows > bounds[:, 1:])
    if outside.any():
        row, channel, sample = (int(place) for place in np.argwhere(outside)[0])
        value, (low, high) = windows[row, channel, sample], ranges[channel]
        what = f"{value:g} in channel {channel} lies outside its declared range {low:g} to {high:g}"
        raise where.below(row).fault(what, "correct it, remove the row, or declare clip = true")


def scale(windows: npt.NDArray[Any], ranges: Ranges) -> FloatArray:
    """Scale each channel to [0, 1]. Values outside its range are clipped; a constant channel becomes 0."""
    bounds = np.asarray(ranges, dtype=np.float64)
    low, span = bounds[:, :1], bounds[:, 1:] - bounds[:, :1]
    scaled = (windows - low) / np.where(span > 0, span, 1)
    return np.clip(scaled, 0, 1).astype(np.float32)
