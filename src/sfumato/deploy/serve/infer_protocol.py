"""Requests and answers of inference in the Open Inference Protocol v2, with its extension for binary tensors.

A request is JSON, or JSON followed by raw tensors: then the header ``Inference-Header-Content-Length`` says how long
the JSON is, and each tensor says its own length (``parameters.binary_data_size``). An answer has the same form.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.deploy.serve.refusals import bad, quoted, too_large
from sfumato.deploy.serve.tensors import Array, TensorSpec, from_bytes, from_numbers, rows_declared, wanted_datatype

LENGTH_HEADER = "inference-header-content-length"
MAX_ID = 256


@dataclass(frozen=True)
class InferCall:
    """What a client asks: every input of the model, and which outputs in which form (True: binary)."""

    id: str | None
    rows: int
    inputs: Mapping[str, Array]
    outputs: Mapping[str, bool]

    def answer_bytes(self, specs: Sequence[TensorSpec]) -> tuple[int, int]:
        """Bytes of the tensors that are asked for raw, and of those that are asked for as JSON, as if they were raw."""
        sizes = {spec.name: self.rows * spec.row_bytes for spec in specs}
        raw = sum(sizes[name] for name, binary in self.outputs.items() if binary)
        return raw, sum(sizes[name] for name in self.outputs) - raw


def read_call(
    body: bytes, header_length: str | None, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], max_json: int
) -> InferCall:
    """Raises ``Refused`` unless the request is one that the model can compute."""
    length = json_length(body, header_length)
    if length > max_json:
        raise too_large(f"the JSON has {length} bytes, {max_json} are allowed; send tensors as binary data.")
    head = _object(body[:length], "the request")
    known = {spec.name: spec for spec in inputs}
    raw = memoryview(body)[length:]
    values: dict[str, Array] = {}
    used = 0
    for given in _objects(head, "inputs"):
        spec = _named(given, known, "input")
        if spec.name in values:
            raise bad(f"input {quoted(spec.name)} is given twice.")
        wanted_datatype(spec, given.get("datatype"))
        rows = rows_declared(spec, given.get("shape"))
        size = _binary_size(spec, given)
        if size is None:
            values[spec.name] = from_numbers(spec, rows, given.get("data"))
            continue
        if used + size > len(raw):
            raise bad(f"input {quoted(spec.name)}: the binary data ends before its {size} bytes.")
        values[spec.name] = from_bytes(spec, rows, raw[used : used + size])
        used += size
    missing = [spec.name for spec in inputs if spec.name not in values]
    if missing:
        raise bad(f"input {quoted(missing[0])} is missing.")
    if used != len(raw):
        raise bad(f"{len(raw) - used} bytes follow after the last tensor.")
    counts = {len(value) for value in values.values()}
    if len(counts) != 1:
        raise bad("all inputs must have the same number of rows.")
    return InferCall(_id(head), counts.pop(), values, _wanted(head, outputs))


def write_answer(
    model: str, version: str, call: InferCall, found: Mapping[str, Array], specs: Sequence[TensorSpec]
) -> tuple[bytes, int | None]:
    """The body, and the length of its JSON if raw tensors follow."""
    by_name = {spec.name: spec for spec in specs}
    head: dict[str, Any] = {"model_name": model, "model_version": version}
    if call.id is not None:
        head["id"] = call.id
    described, raw = [], []
    for name, binary in call.outputs.items():
        spec = by_name[name]
        value = np.ascontiguousarray(found[name], dtype=spec.dtype)
        one: dict[str, Any] = {"name": name, "datatype": spec.datatype, "shape": list(value.shape)}
        if binary:
            one["parameters"] = {"binary_data_size": value.nbytes}
            raw.append(value.tobytes())
        else:
            one["data"] = value.ravel().tolist()
        described.append(one)
    text = json.dumps(head | {"outputs": described}, separators=(",", ":")).encode()
    return (b"".join([text, *raw]), len(text)) if raw else (text, None)


def json_length(body: bytes, header_length: str | None) -> int:
    """Bytes of the JSON before the raw tensors."""
    if header_length is None:
        return len(body)
    if not (header_length.isascii() and header_length.isdigit() and len(header_length) < 12):
        raise bad(f"{LENGTH_HEADER} must be a whole number of bytes.")
    length = int(header_length)
    if length > len(body):
        raise bad(f"{LENGTH_HEADER} says {length}, but the body has {len(body)} bytes.")
    return length


def _object(text: bytes, what: str) -> dict[str, Any]:
    try:
        found = json.loads(text.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise bad(f"{what} is not text in UTF-8.") from None
    except json.JSONDecodeError as error:
        raise bad(f"{what} is not JSON: {error.msg} at position {error.pos}.") from None
    except (ValueError, RecursionError):
        raise bad(f"{what} is not JSON that can be read: NaN, a number that is too long, or nested too deep.") from None
    if not isinstance(found, dict):
        raise bad(f"{what} must be a JSON object.")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(name)


def _objects(head: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = head.get(key)
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        raise bad(f"'{key}' must be a list of one or more objects.")
    return found


def _named(given: Mapping[str, Any], known: Mapping[str, TensorSpec], what: str) -> TensorSpec:
    name = given.get("name")
    spec = known.get(name) if isinstance(name, str) else None
    if spec is None:
        raise bad(f"no {what} {quoted(name)}; the model has {', '.join(known)}.")
    return spec


def _parameters(given: Mapping[str, Any], whose: str) -> Mapping[str, Any]:
    found = given.get("parameters", {})
    if not isinstance(found, dict):
        raise bad(f"parameters of {whose} must be an object.")
    foreign = sorted(name for name in found if name.startswith("shared_memory") or name == "classification")
    if foreign:
        raise bad(f"parameter {foreign[0]} of {whose} is not supported.")
    return found


def _binary_size(spec: TensorSpec, given: Mapping[str, Any]) -> int | None:
    size = _parameters(given, f"input {quoted(spec.name)}").get("binary_data_size")
    if size is None:
        return None
    if type(size) is not int or size < 0:
        raise bad(f"input {quoted(spec.name)}: binary_data_size must be a whole number of bytes.")
    if "data" in given:
        raise bad(f"input {quoted(spec.name)}: either data or binary_data_size, not both.")
    return size


def _flag(parameters: Mapping[str, Any], name: str, default: bool) -> bool:
    found = parameters.get(name, default)
    if type(found) is not bool:
        raise bad(f"parameter {name} must be true or false.")
    return found


def _wanted(head: Mapping[str, Any], specs: Sequence[TensorSpec]) -> dict[str, bool]:
    binary = _flag(_parameters(head, "the request"), "binary_data_output", False)
    if head.get("outputs") in (None, []):
        return {spec.name: binary for spec in specs}
    known = {spec.name: spec for spec in specs}
    wanted: dict[str, bool] = {}
    for given in _objects(head, "outputs"):
        spec = _named(given, known, "output")
        if spec.name in wanted:
            raise bad(f"output {quoted(spec.name)} is asked for twice.")
        wanted[spec.name] = _flag(_parameters(given, f"output {quoted(spec.name)}"), "binary_data", binary)
    return wanted


def _id(head: Mapping[str, Any]) -> str | None:
    found = head.get("id")
    if found is not None and (not isinstance(found, str) or len(found) > MAX_ID):
        raise bad(f"id must be a text of at most {MAX_ID} characters.")
    return found
