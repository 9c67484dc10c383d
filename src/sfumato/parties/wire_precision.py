"""Precision of numbers on the wire. Representations are rounded after the noise is added, never before."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray

WIRES = ("float32", "float16", "uint8", "uint4")
_HIGHEST = {"uint8": 255, "uint4": 15}


def counted(wire: str) -> bool:
    """Return whether numbers are sent as counts of a step, with an offset and a step size for each column."""
    return wire in _HIGHEST


def sent_width(wire: str, width: int) -> int:
    """Return the array entries that a row of ``width`` numbers takes; in ``uint4`` two numbers share a byte."""
    return (width + 1) // 2 if wire == "uint4" else width


def sent_dtype(wire: str) -> str:
    """Return the dtype of the array that is sent."""
    return "uint8" if counted(wire) else wire


def steps(payload: FloatArray, wire: str) -> dict[str, FloatArray]:
    """Return the ``low`` and ``step`` of each column with which the counts cover it; empty for floats."""
    if not counted(wire):
        return {}
    low = payload.min(axis=0)
    step = np.maximum((payload.max(axis=0) - low) / _HIGHEST[wire], np.float32(1e-12))
    return {"low": low.astype(np.float32), "step": step.astype(np.float32)}


def packed(
    payload: FloatArray, wire: str, low: FloatArray | None = None, step: FloatArray | None = None
) -> npt.NDArray[Any]:
    """Convert the payload to the form in which it is sent."""
    if low is None or step is None:
        return np.asarray(payload, dtype=wire)
    counts = np.asarray(np.clip(np.rint((payload - low) / step), 0, _HIGHEST[wire]), dtype=np.uint8)
    if wire == "uint8":
        return counts
    even = np.pad(counts, ((0, 0), (0, counts.shape[1] % 2)))
    return np.asarray(even[:, ::2] << 4 | even[:, 1::2], dtype=np.uint8)


def unpacked(
    codes: npt.NDArray[Any], wire: str, low: FloatArray | None = None, step: FloatArray | None = None
) -> FloatArray:
    """Convert what was sent back to the payload."""
    if low is None or step is None:
        return codes.astype(np.float32)
    if wire == "uint4":
        codes = np.stack([codes >> 4, codes & 15], axis=2).reshape(len(codes), -1)[:, : len(low)]
    with np.errstate(over="ignore"):  # the caller refuses infinite values
        return np.asarray(low + codes.astype(np.float32) * step, dtype=np.float32)


def halved(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert float32 weights to 16 bits; other types stay as they are."""
    return values.astype(np.float16) if values.dtype == np.float32 else values


def restored(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert weights from ``halved`` back to float32."""
    return values.astype(np.float32) if values.dtype == np.float16 else values
