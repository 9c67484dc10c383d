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
    return _in_bytes(np.rint((payload - low) / step), wire)


def _in_bytes(counts: npt.NDArray[Any], wire: str) -> npt.NDArray[np.uint8]:
    """Counts (N, h) as bytes (N, ``sent_width``)."""
    whole = np.asarray(np.clip(counts, 0, _HIGHEST[wire]), dtype=np.uint8)
    if wire == "uint8":
        return whole
    even = np.pad(whole, ((0, 0), (0, whole.shape[1] % 2)))
    return np.asarray(even[:, ::2] << 4 | even[:, 1::2], dtype=np.uint8)


def _from_bytes(codes: npt.NDArray[Any], wire: str, width: int) -> npt.NDArray[Any]:
    """The counts (N, ``width``) in bytes."""
    if wire == "uint4":
        codes = np.stack([codes >> 4, codes & 15], axis=2).reshape(len(codes), -1)
    return codes[:, :width]


def unpacked(
    codes: npt.NDArray[Any], wire: str, low: FloatArray | None = None, step: FloatArray | None = None
) -> FloatArray:
    """Convert what was sent back to the payload."""
    if low is None or step is None:
        return codes.astype(np.float32)
    with np.errstate(over="ignore"):  # the caller refuses infinite values
        return np.asarray(low + _from_bytes(codes, wire, len(low)).astype(np.float32) * step, dtype=np.float32)


def flat_size(size: int, wire: str) -> int:
    """Return the bytes that a tensor of ``size`` numbers takes as counts."""
    return sent_width(wire, size)


def flat_codes(
    values: FloatArray, wire: str, random: np.random.Generator | None = None
) -> tuple[npt.NDArray[np.uint8], np.float32, np.float32]:
    """Convert a tensor to counts (bytes,) of one step from its lowest number; with ``random``, rounded at random."""
    low = np.float32(values.min())
    step = np.float32(max((float(values.max()) - float(low)) / _HIGHEST[wire], 1e-12))
    counts = (np.asarray(values, dtype=np.float64).reshape(1, -1) - low) / step
    rounded = np.rint(counts) if random is None else np.floor(counts + random.random(counts.shape))
    return _in_bytes(rounded, wire)[0], low, step


def flat_values(codes: npt.NDArray[Any], wire: str, low: np.float32, step: np.float32, size: int) -> FloatArray:
    """Convert the counts of a tensor back to its numbers, (size,)."""
    with np.errstate(over="ignore"):  # the caller refuses infinite values
        return np.asarray(low + _from_bytes(codes[None], wire, size)[0].astype(np.float32) * step, dtype=np.float32)


def halved(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert float32 weights to 16 bits; other types stay as they are."""
    return values.astype(np.float16) if values.dtype == np.float32 else values


def restored(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert weights from ``halved`` back to float32."""
    return values.astype(np.float32) if values.dtype == np.float16 else values
