"""Checks of everything that another party or the server sends, before it is used.

No declared size is trusted: an array is read only if its type, shape and length agree with its own header and with
what was expected.
"""

from __future__ import annotations

import io
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.documents import json_value
from sfumato.core.errors import DataError
from sfumato.mechanisms.ars.published_encoder import Published
from sfumato.parties.wire_precision import WIRES, counted, restored, sent_dtype, sent_width, unpacked

MOST_BYTES = 256 * 2**20
"""Default limit for a message from a party. For comparison, 10,000 records of 64 numbers take 2.6 MB."""
MOST_WIDTH = 65_536
MOST_VALUE = 1e6
"""Representations and weights are far below this; larger numbers only serve to upset whoever computes with them."""
MOST_TEXT = 4 * 2**20
CODES = ("uint8", "uint16", "int64")
WEIGHTS = ("float32", "float16", "int64")
Anything = Mapping[str, Any]


class MessageRefused(Exception):
    """A message was refused. The text says why and quotes nothing of its content."""


@dataclass(frozen=True)
class Hello:
    """How a party introduces itself: name, record counts, and digests of schema and ids."""

    name: str
    size: int
    rows: int
    held_out: int
    schema: str
    ids: str
    utility: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Shared:
    """A party's accepted representations (N, h), label codes and (vertical) held-out representations."""

    z: FloatArray
    labels: Mapping[str, IntArray]
    held_out: FloatArray | None
    arrays: Anything


def check_size(size: int, most: int) -> None:
    """Raise if a message is larger than allowed."""
    if size > most:
        raise MessageRefused(f"its message has {size:,} bytes; {most:,} are allowed")


def check_keys(content: Anything, wanted: Collection[str], what: str = "message") -> None:
    """Raise unless ``content`` has exactly these keys."""
    found = set(content)
    if found != set(wanted):
        extra, missing = sorted(found - set(wanted)), sorted(set(wanted) - found)
        text = " and ".join(
            f"{word} {', '.join(names)}"[:120] for word, names in (("lacks", missing), ("also has", extra)) if names
        )
        raise MessageRefused(f"its {what} {text}")


def text_of(record: Anything, key: str, most: int = 200) -> str:
    """Return a string of limited length."""
    value = record[key]
    if not isinstance(value, str) or len(value) > most:
        raise MessageRefused(f"'{key}' is not a string of at most {most} characters")
    return value


def name_of(record: Anything) -> str:
    """Return a party's name, which may have letters, digits, -, _ and . only."""
    name = text_of(record, "name", 60)
    if not name or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise MessageRefused("its name has characters other than letters, digits, -, _ and .")
    return name


def names_of(record: Anything, key: str) -> list[str]:
    """Return a list of distinct party names from JSON."""
    found = _json_of(record, key)
    if not isinstance(found, list):
        raise MessageRefused(f"'{key}' is not a list of names")
    names = [name_of({"name": name}) for name in found]
    if len(set(names)) < len(names):
        raise MessageRefused(f"'{key}' repeats a name")
    return names


def wire_of(record: Anything) -> str:
    """Return the precision of the numbers sent, one of ``WIRES``."""
    wire = text_of(record, "wire")
    if wire not in WIRES:
        raise MessageRefused(f"'wire' is not one of {', '.join(WIRES)}")
    return wire


def by_party(arrays: Anything) -> dict[str, dict[str, Any]]:
    """Group arrays named ``place/name`` by place."""
    found: dict[str, dict[str, Any]] = {}
    for key, array in arrays.items():
        place, _, name = str(key).partition("/")
        found.setdefault(place, {})[name] = array
    return found


def count_of(record: Anything, key: str, least: int = 0) -> int:
    """Return a whole number ≥ ``least``."""
    value = record[key]
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise MessageRefused(f"'{key}' is not a whole number ≥ {least}")
    return value


def object_of(record: Anything, key: str) -> dict[str, Any]:
    """Return a JSON object."""
    value = _json_of(record, key)
    if not isinstance(value, dict):
        raise MessageRefused(f"'{key}' is not a JSON object")
    return value


def _json_of(record: Anything, key: str) -> Any:
    """Return the value of a JSON text, or None if it is not valid."""
    try:
        return json_value(text_of(record, key, MOST_TEXT), key)
    except DataError:
        return None


def plain_array(
    array: Any, name: str, dtypes: Sequence[str], shape: Sequence[int | None] | None = None
) -> npt.NDArray[Any]:
    """Return the numbers in a Flower ``Array`` without unpickling and without trusting its declared size.

    ``shape`` gives the expected size of each axis, None for any size. Without it any shape is accepted.
    """
    declared, sides = getattr(array, "dtype", None), getattr(array, "shape", None)
    data, coded = getattr(array, "data", None), getattr(array, "stype", None)
    if coded != "numpy.ndarray" or not isinstance(data, (bytes, bytearray, memoryview)):
        raise MessageRefused(f"'{name}' is not stored as a plain array")
    if declared not in dtypes:
        raise MessageRefused(f"'{name}' holds {str(declared)[:20]}, expected {' or '.join(dtypes)}")
    if not isinstance(sides, tuple) or any(not isinstance(side, int) or side < 0 for side in sides):
        raise MessageRefused(f"'{name}' has no valid shape")
    if shape is not None and (
        len(shape) != len(sides) or any(a is not None and a != b for a, b in zip(shape, sides, strict=True))
    ):
        wanted = " × ".join("any" if side is None else str(side) for side in shape)
        raise MessageRefused(f"'{name}' has shape {' × '.join(map(str, sides))[:60]}, expected {wanted}")
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        if version != (1, 0):
            raise ValueError(version)
        stored, fortran, kind = np.lib.format.read_array_header_1_0(stream)
    except Exception:  # numpy may reject a header with any exception
        raise MessageRefused(f"'{name}' is garbage: its bytes are not an array") from None
    expected = np.dtype(str(declared))
    if tuple(stored) != sides or kind != expected or fortran:
        raise MessageRefused(f"'{name}' is garbage: its bytes are not the array it declares")
    start = stream.tell()
    if len(data) - start != math.prod(sides) * expected.itemsize:
        raise MessageRefused(f"'{name}' is garbage: its length does not match its shape")
    return np.frombuffer(data, dtype=expected, offset=start).reshape(sides)


def check_hello(content: Anything) -> Hello:
    """Check and return how a party introduces itself."""
    check_keys(content, ("hello",))
    record = content["hello"]
    check_keys(record, ("name", "size", "rows", "held-out", "schema", "ids", "labels"))
    return Hello(
        name=name_of(record),
        size=count_of(record, "size", 1),
        rows=count_of(record, "rows", 1),
        held_out=count_of(record, "held-out", 1),
        schema=text_of(record, "schema"),
        ids=text_of(record, "ids"),
        utility=classes_of(record, "labels"),
    )


def classes_of(record: Anything, key: str) -> dict[str, tuple[str, ...]]:
    """Return the labels and their class names from JSON."""
    found = object_of(record, key)
    for names in found.values():
        if not isinstance(names, list) or len(names) < 2 or not all(isinstance(name, str) for name in names):
            raise MessageRefused(f"'{key}' does not list the classes of each label")
    return {label: tuple(names) for label, names in found.items()}


def check_encoder(content: Anything) -> Published:
    """Check a published encoder, including that its digest matches its content."""
    check_keys(content, ("encoder", "about"))
    about, arrays = content["about"], content["encoder"]
    check_keys(about, ("params", "schema", "digest"), "encoder")
    params, schema = object_of(about, "params"), object_of(about, "schema")
    tensors = {str(name): restored(plain_array(array, str(name)[:60], WEIGHTS)) for name, array in arrays.items()}
    if not tensors:
        raise MessageRefused("its encoder is empty")
    for name, tensor in tensors.items():
        bounded(tensor, name[:60])
    encoder = Published(params, schema, tensors)
    if text_of(about, "digest") != encoder.digest:
        raise MessageRefused("its encoder does not match its digest")
    return encoder


def check_shared(
    content: Anything,
    *,
    encoder: str,
    schema: str,
    wire: str,
    rows: int,
    classes: Mapping[str, int],
    held_out: int | None = None,
) -> Shared:
    """Check that a message holds a party's representations and labels, and nothing else.

    ``classes`` maps each label that must be present to its number of classes. ``held_out`` is the number of held-out
    representations (vertical), or None if there must be none.
    """
    check_keys(content, ("shared", "about"))
    about, arrays = content["about"], content["shared"]
    check_keys(about, ("encoder", "schema", "wire"), "description")
    if text_of(about, "encoder") != encoder:
        raise MessageRefused("it used another encoder than the published one")
    if text_of(about, "schema") != schema:
        raise MessageRefused("its records have another schema than it announced")
    if text_of(about, "wire") != wire:
        raise MessageRefused("its numbers do not have the requested precision")
    return check_arrays(arrays, wire=wire, rows=rows, classes=classes, held_out=held_out)


def check_arrays(
    arrays: Anything, *, wire: str, rows: int | None, classes: Mapping[str, int], held_out: int | None
) -> Shared:
    """Check the arrays of one party's share: names, types, shapes, finite and bounded values, codes in range."""
    scale = ("low", "step") if counted(wire) else ()
    names = ["z", *scale, *(["held-out"] if held_out is not None else []), *(f"label.{label}" for label in classes)]
    check_keys(arrays, names, "share")
    kind = (sent_dtype(wire),)
    scales = {name: bounded(plain_array(arrays[name], name, ("float32",), (None,)), name) for name in scale}
    width = len(scales["low"]) if scale else None
    codes = plain_array(arrays["z"], "z", kind, (rows, None if width is None else sent_width(wire, width)))
    width = codes.shape[1] if width is None else width
    if not 1 <= width <= MOST_WIDTH or not len(codes):
        raise MessageRefused(f"'z' has {len(codes)} rows of {width} numbers")
    if scale and len(scales["step"]) != width:
        raise MessageRefused("'step' and 'low' differ in length")
    z = bounded(unpacked(codes, wire, **scales), "z")
    further = None
    if held_out is not None:
        codes = plain_array(arrays["held-out"], "held-out", kind, (held_out, codes.shape[1]))
        further = bounded(unpacked(codes, wire, **scales), "held-out")
    return Shared(z, _codes(arrays, len(z), classes), further, arrays)


def check_labels(arrays: Anything, *, rows: int, classes: Mapping[str, int]) -> dict[str, IntArray]:
    """Check the labels that one party sends to all others (vertical)."""
    check_keys(arrays, [f"label.{label}" for label in classes], "labels")
    return _codes(arrays, rows, classes)


def _codes(arrays: Anything, rows: int, classes: Mapping[str, int]) -> dict[str, IntArray]:
    labels = {}
    for label, count in classes.items():
        name = f"label.{label}"
        values = plain_array(arrays[name], name, CODES, (rows,)).astype(np.int64)
        if values.min() < 0 or values.max() >= count:
            raise MessageRefused(f"label '{label}' has codes outside 0 … {count - 1}")
        labels[label] = values
    return labels


def check_metrics(content: Anything, held_out: int) -> dict[str, float]:
    """Check a party's report: two counts, of which it announced ``held_out`` before, and figures from 0 to 1."""
    check_keys(content, ("metrics",))
    found = dict(content["metrics"])
    if len(found) > 1000 or any(len(str(name)) > 200 for name in found):
        raise MessageRefused("its report is too long")
    if not all(isinstance(value, (int, float)) and math.isfinite(value) for value in found.values()):
        raise MessageRefused("its report has values that are not finite numbers")
    if found.get("held-out") != held_out:
        raise MessageRefused(f"it did not test on the {held_out} held-out records that it announced")
    if not all(0.0 <= value <= 1.0 for name, value in found.items() if name not in ("rows", "held-out")):
        raise MessageRefused("its report has a figure that is not between 0 and 1")
    return {str(name): float(value) for name, value in found.items()}


def bounded(values: npt.NDArray[Any], name: str) -> Any:
    """Return the values, all finite and at most ``MOST_VALUE``."""
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise MessageRefused(f"'{name}' has NaN or infinite values")
    if values.dtype.kind == "f" and values.size and np.abs(values).max() > MOST_VALUE:
        raise MessageRefused(f"'{name}' has values beyond ±{MOST_VALUE:g}")
    return values
