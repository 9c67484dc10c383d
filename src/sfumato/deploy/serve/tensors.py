"""Tensors on the wire: the protocol's names of data types, JSON numbers and raw bytes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.deploy.serve.refusals import Refused, bad, quoted

Array = NDArray[Any]

DATATYPES: Final[dict[str, np.dtype[Any]]] = {
    name: np.dtype(code).newbyteorder("<")
    for name, code in {
        "BOOL": "?", "UINT8": "u1", "UINT16": "u2", "UINT32": "u4", "UINT64": "u8",
        "INT8": "i1", "INT16": "i2", "INT32": "i4", "INT64": "i8",
        "FP16": "f2", "FP32": "f4", "FP64": "f8",
    }.items()
}  # fmt: skip
"""Data types of the protocol that can be served; raw tensors are little-endian."""

_READS = {"b": "b", "u": "iu", "i": "iu", "f": "iuf"}
"""Kinds of JSON numbers that fit into a kind of tensor."""


@dataclass(frozen=True)
class TensorSpec:
    """A tensor of the model; ``shape`` is that of one row."""

    name: str
    datatype: str
    shape: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        return DATATYPES[self.datatype]

    @property
    def row_numbers(self) -> int:
        return prod(self.shape)

    @property
    def row_bytes(self) -> int:
        return self.row_numbers * self.dtype.itemsize

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "datatype": self.datatype, "shape": [-1, *self.shape]}


def rows_declared(spec: TensorSpec, shape: Any) -> int:
    """Rows of a declared shape; refused unless the rest is exactly the model's. Nothing is allocated."""
    wanted = ", ".join(["rows", *map(str, spec.shape)])
    if not isinstance(shape, list) or not all(type(size) is int for size in shape):
        raise bad(f"input {quoted(spec.name)}: shape must be a list of whole numbers, [{wanted}].")
    if len(shape) != 1 + len(spec.shape) or tuple(shape[1:]) != spec.shape:
        raise bad(f"input {quoted(spec.name)}: the shape must be [{wanted}].")
    if shape[0] < 1:
        raise bad(f"input {quoted(spec.name)}: there must be one row or more.")
    return int(shape[0])


def from_bytes(spec: TensorSpec, rows: int, raw: memoryview) -> Array:
    """A raw tensor, whose length is that of its shape; no copy."""
    if len(raw) != rows * spec.row_bytes:
        raise bad(
            f"input {quoted(spec.name)}: {len(raw)} bytes for {rows} rows of {spec.row_bytes}; "
            f"{rows * spec.row_bytes} were expected."
        )
    if spec.datatype == "BOOL" and (np.frombuffer(raw, np.uint8) > 1).any():
        raise bad(f"input {quoted(spec.name)}: a BOOL is a byte 0 or 1.")
    return _finite(spec, np.frombuffer(raw, spec.dtype).reshape(rows, *spec.shape))


def from_numbers(spec: TensorSpec, rows: int, data: Any) -> Array:
    """JSON numbers, flat or nested as the shape says."""
    shape = (rows, *spec.shape)
    if not isinstance(data, list):
        raise bad(f"input {quoted(spec.name)}: data must be a list of numbers.")
    try:
        found = np.asarray(data)
    except (ValueError, OverflowError):
        raise bad(f"input {quoted(spec.name)}: data is a ragged list, or its numbers are too large.") from None
    if found.shape not in (shape, (prod(shape),)):
        wanted = f"{prod(shape)} numbers, flat or nested as {list(shape)}"
        raise bad(f"input {quoted(spec.name)}: data must hold {wanted}, as its shape says.")
    return _cast(spec, found).reshape(shape)


def _cast(spec: TensorSpec, found: Array) -> Array:
    dtype = spec.dtype
    if found.dtype.kind not in _READS[dtype.kind]:
        raise bad(f"input {quoted(spec.name)}: data must hold {spec.datatype} numbers and nothing else.")
    if dtype.kind in "iu":
        allowed = np.iinfo(dtype)
        if int(found.min()) < allowed.min or int(found.max()) > allowed.max:
            raise bad(f"input {quoted(spec.name)}: a number is out of the range of {spec.datatype}.")
    with np.errstate(over="ignore"):
        return _finite(spec, found.astype(dtype))


def _finite(spec: TensorSpec, values: Array) -> Array:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise bad(f"input {quoted(spec.name)}: NaN or infinity, or a number beyond {spec.datatype}.")
    return values


def wanted_datatype(spec: TensorSpec, datatype: Any) -> None:
    """Refused unless the declared data type is the model's."""
    if datatype != spec.datatype:
        raise bad(f"input {quoted(spec.name)}: the datatype must be {spec.datatype}, not {quoted(datatype)}.")


def not_finite() -> Refused:
    """422: the input was readable, but the network overflows on it."""
    return Refused(422, "overflow", "the model gives no finite answer for these values: they are far out of its range.")
