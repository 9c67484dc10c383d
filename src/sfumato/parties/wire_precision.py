"""How many bits a number takes on the wire; representations are rounded after the noise, never before."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray

WIRES = ("float32", "float16", "uint8", "uint4")
_HIGHEST = {"uint8": 255, "uint4": 15}


def counted(wire: str) -> bool:
    """Whether numbers are sent as whole numbers of steps, beside a lowest value and a step for each column."""
    return wire in _HIGHEST


def sent_width(wire: str, width: int) -> int:
    """How many entries of an array a row of ``width`` numbers takes: two numbers share a byte in ``uint4``."""
    return (width + 1) // 2 if wire == "uint4" else width


def sent_dtype(wire: str) -> str:
    """The kind of the array that is sent."""
    return "uint8" if counted(wire) else wire


def steps(payload: FloatArray, wire: str) -> dict[str, FloatArray]:
    """``low`` and ``step`` of each column so that the counts cover it; nothing for floats."""
    if not counted(wire):
        return {}
    low = payload.min(axis=0)
    step = np.maximum((payload.max(axis=0) - low) / _HIGHEST[wire], np.float32(1e-12))
    return {"low": low.astype(np.float32), "step": step.astype(np.float32)}


def packed(
    payload: FloatArray, wire: str, low: FloatArray | None = None, step: FloatArray | None = None
) -> npt.NDArray[Any]:
    """The payload as it is sent."""
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
    """The payload as it is read."""
    if low is None or step is None:
        return codes.astype(np.float32)
    if wire == "uint4":
        codes = np.stack([codes >> 4, codes & 15], axis=2).reshape(len(codes), -1)[:, : len(low)]
    with np.errstate(over="ignore"):  # an infinity is refused by the caller
        return np.asarray(low + codes.astype(np.float32) * step, dtype=np.float32)


def halved(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Weights in half the bytes; whole numbers stay as they are."""
    return values.astype(np.float16) if values.dtype == np.float32 else values


def restored(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Weights as they are used, after ``halved``."""
    return values.astype(np.float32) if values.dtype == np.float16 else values
