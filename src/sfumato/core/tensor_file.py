"""Named NumPy arrays in the safetensors format, where the package of that name may be missing: on small devices."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

_CODES = {"U8": "<u1", "I64": "<i8", "U64": "<u8", "F32": "<f4", "F64": "<f8", "I32": "<i4"}
_LARGEST_HEADER = 100_000_000

Arrays = dict[str, npt.NDArray[Any]]


def packed(arrays: Mapping[str, npt.NDArray[Any]], about: Mapping[str, str]) -> bytes:
    """The bytes of a file: 8 bytes of length, a JSON header, then the numbers, widest types first."""
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    header: dict[str, Any] = {"__metadata__": dict(about)}
    at = 0
    for name in order:
        array = arrays[name]
        code = next(code for code, kind in _CODES.items() if np.dtype(kind) == array.dtype)
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join(
        [len(text).to_bytes(8, "little"), text, *(np.ascontiguousarray(arrays[n]).tobytes() for n in order)]
    )


def unpacked(raw: bytes) -> tuple[Arrays, dict[str, str]]:
    """The arrays of a file and what is said about them; a ``ValueError`` if it is damaged."""
    size = int.from_bytes(raw[:8], "little")
    if len(raw) < 8 or size > min(len(raw) - 8, _LARGEST_HEADER):
        raise ValueError("the header is cut off")
    header = json.loads(raw[8 : 8 + size])
    body, found, total = memoryview(raw)[8 + size :], Arrays(), 0
    about = header.pop("__metadata__", {})
    for name, one in header.items():
        start, end = (int(place) for place in one["data_offsets"])
        kind, shape = np.dtype(_CODES[one["dtype"]]), tuple(int(side) for side in one["shape"])
        if not 0 <= start <= end <= len(body) or end - start != kind.itemsize * int(np.prod(shape, dtype=object)):
            raise ValueError(f"the numbers of '{name}' are cut off")
        found[name] = np.frombuffer(body[start:end], kind).reshape(shape)
        total += end - start
    if total != len(body):
        raise ValueError("there is more than the header says")
    return found, {str(name): str(value) for name, value in about.items()}
