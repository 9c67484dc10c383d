"""Requests and answers of the Open Inference Protocol v2, as JSON and with binary tensors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.documents import json_value
from sfumato.core.errors import DataError
from sfumato.core.ports import Port

LENGTH = "Inference-Header-Content-Length"
_TYPES = {"float32": "FP32", "int64": "INT64"}

Array = npt.NDArray[Any]


def request(
    ports: Sequence[Port], arrays: Sequence[Array], output: str, name: str, *, binary: bool
) -> tuple[bytes, dict[str, str]]:
    """Body and headers of a call of ``infer`` with the id ``name``."""
    tensors, raw = [], []
    for port, array in zip(ports, arrays, strict=True):
        said: dict[str, Any] = {"name": port.name, "shape": list(array.shape), "datatype": _TYPES[port.dtype]}
        if binary:
            raw.append(np.ascontiguousarray(array, dtype=np.dtype(port.dtype).newbyteorder("<")).tobytes())
            said["parameters"] = {"binary_data_size": len(raw[-1])}
        else:
            said["data"] = array.reshape(-1).tolist()
        tensors.append(said)
    asked = [{"name": output, "parameters": {"binary_data": binary}}]
    head = json.dumps({"id": name, "inputs": tensors, "outputs": asked}, allow_nan=False).encode()
    if not binary:
        return head, {"Content-Type": "application/json"}
    return b"".join([head, *raw]), {"Content-Type": "application/octet-stream", LENGTH: str(len(head))}


def answered(body: bytes, headers: Mapping[str, str], port: Port, count: int, name: str) -> npt.NDArray[np.float32]:
    """The output ``port`` of an answer to the request ``name`` about ``count`` records.

    Raises:
        DataError: It is no such answer.
    """
    length = next((value for key, value in headers.items() if key.lower() == LENGTH.lower()), None)
    if length is not None and not (length.isdigit() and int(length) <= len(body)):
        raise _wrong(f"its header is said to have {length[:20]} bytes")
    split = len(body) if length is None else int(length)
    said = json_value(body[:split], "the server's answer", "ask again")
    if not isinstance(said, Mapping) or not isinstance(said.get("outputs"), list):
        raise _wrong("it has no outputs")
    if said.get("id") not in (None, "", name):
        raise _wrong("it is that to another question")
    at = split
    for one in said["outputs"]:
        if not isinstance(one, Mapping):
            raise _wrong("an output is no table")
        told = one.get("parameters")
        size = told.get("binary_data_size") if isinstance(told, Mapping) else None
        if size is not None and not (isinstance(size, int) and 0 <= size <= len(body) - at):
            raise _wrong("its numbers are cut off")
        here, at = at, at + (size or 0)
        if one.get("name") == port.name:
            return _tensor(one, None if size is None else body[here : here + size], port, count)
    raise _wrong(f"the output '{port.name}' is missing")


def _tensor(said: Mapping[str, Any], raw: bytes | None, port: Port, count: int) -> npt.NDArray[np.float32]:
    shape = (count, *port.row)
    if said.get("shape") != list(shape) or said.get("datatype") != _TYPES[port.dtype]:
        raise _wrong(f"'{port.name}' is {said.get('datatype')} of shape {said.get('shape')}, not {shape}")
    if raw is not None:
        if len(raw) != 4 * prod(shape):
            raise _wrong(f"'{port.name}' has {len(raw)} bytes, not {4 * prod(shape)}")
        found = np.frombuffer(raw, "<f4").astype(np.float32).reshape(shape)
    else:
        try:
            found = np.asarray(said.get("data"), dtype=np.float32).reshape(shape)
        except (ValueError, TypeError):
            raise _wrong(f"'{port.name}' is no list of {prod(shape)} numbers") from None
    if not np.isfinite(found).all():
        raise _wrong(f"'{port.name}' holds NaN or infinite values")
    return found


def _wrong(why: str) -> DataError:
    return DataError(f"the server's answer is not one that this bundle's cloud half gives ({why}): check the address.")
