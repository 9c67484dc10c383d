"""The border: what another party or the server sends is checked before anything is made of it.

Nothing here trusts a declared size: an array is read only when kind, shape and length agree with its own header and
with what was expected.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray, IntArray
from sfumato.mechanisms.ars.published_encoder import Published
from sfumato.parties.wire_precision import WIRES, counted, restored, sent_dtype, sent_width, unpacked

MOST_BYTES = 256 * 2**20
"""A message of a party may take so much by default: 10,000 records of 64 numbers take 2.6 MB."""
MOST_WIDTH = 65_536
MOST_TEXT = 4 * 2**20
CODES = ("uint8", "uint16", "int64")
WEIGHTS = ("float32", "float16", "int64")
Anything = Mapping[str, Any]


class MessageRefused(Exception):
    """A message that is not what it should be; the text says why and quotes nothing of its content."""


@dataclass(frozen=True)
class Hello:
    """What a party says of itself before anything else: name, numbers of records, digests of schema and ids."""

    name: str
    size: int
    rows: int
    held_out: int
    schema: str
    ids: str
    utility: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Shared:
    """A party's accepted representations (N, h), codes of its labels, and (vertical) those of held-out records."""

    z: FloatArray
    labels: Mapping[str, IntArray]
    held_out: FloatArray | None
    arrays: Anything


def check_size(size: int, most: int) -> None:
    """Raise if a message is larger than was agreed."""
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
    """A text of limited length."""
    value = record[key]
    if not isinstance(value, str) or len(value) > most:
        raise MessageRefused(f"'{key}' is no text of at most {most} characters")
    return value


def name_of(record: Anything) -> str:
    """A party's name: letters, digits, -, _ and . only."""
    name = text_of(record, "name", 60)
    if not name or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise MessageRefused("its name is not made of letters, digits, -, _ and .")
    return name


def names_of(record: Anything, key: str) -> list[str]:
    """The names of parties, each once, from JSON."""
    try:
        found = json.loads(text_of(record, key, MOST_TEXT))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        raise MessageRefused(f"'{key}' is no list of names")
    names = [name_of({"name": name}) for name in found]
    if len(set(names)) < len(names):
        raise MessageRefused(f"'{key}' has a name twice")
    return names


def wire_of(record: Anything) -> str:
    """How numbers are sent: one of the ways that are known here."""
    wire = text_of(record, "wire")
    if wire not in WIRES:
        raise MessageRefused(f"'wire' is none of {', '.join(WIRES)}")
    return wire


def by_party(arrays: Anything) -> dict[str, dict[str, Any]]:
    """Arrays called ``place/name``, by place."""
    found: dict[str, dict[str, Any]] = {}
    for key, array in arrays.items():
        place, _, name = str(key).partition("/")
        found.setdefault(place, {})[name] = array
    return found


def count_of(record: Anything, key: str, least: int = 0) -> int:
    """A whole number ≥ ``least``."""
    value = record[key]
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise MessageRefused(f"'{key}' is no whole number ≥ {least}")
    return value


def object_of(record: Anything, key: str) -> dict[str, Any]:
    """A JSON object."""
    try:
        value = json.loads(text_of(record, key, MOST_TEXT))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise MessageRefused(f"'{key}' is no JSON object")
    return value


def plain_array(
    array: Any, name: str, dtypes: Sequence[str], shape: Sequence[int | None] | None = None
) -> npt.NDArray[Any]:
    """The numbers in a Flower ``Array``, without unpickling and without believing its sizes.

    ``shape`` gives the sides, None for any; without it every shape may come.
    """
    declared, sides = getattr(array, "dtype", None), getattr(array, "shape", None)
    data, coded = getattr(array, "data", None), getattr(array, "stype", None)
    if coded != "numpy.ndarray" or not isinstance(data, (bytes, bytearray, memoryview)):
        raise MessageRefused(f"'{name}' is not stored as a plain array")
    if declared not in dtypes:
        raise MessageRefused(f"'{name}' holds {str(declared)[:20]}, expected {' or '.join(dtypes)}")
    if not isinstance(sides, tuple) or any(not isinstance(side, int) or side < 0 for side in sides):
        raise MessageRefused(f"'{name}' has no proper shape")
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
    except Exception:  # any header that numpy does not take, in whatever way it fails
        raise MessageRefused(f"'{name}' is garbage: its bytes are no array") from None
    expected = np.dtype(str(declared))
    if tuple(stored) != sides or kind != expected or fortran:
        raise MessageRefused(f"'{name}' is garbage: its bytes are another array than it says")
    start = stream.tell()
    if len(data) - start != math.prod(sides) * expected.itemsize:
        raise MessageRefused(f"'{name}' is garbage: its length does not fit its shape")
    return np.frombuffer(data, dtype=expected, offset=start).reshape(sides)


def check_hello(content: Anything) -> Hello:
    """What a party said of itself."""
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
    """Labels with the names of their classes, from JSON."""
    found = object_of(record, key)
    for names in found.values():
        if not isinstance(names, list) or len(names) < 2 or not all(isinstance(name, str) for name in names):
            raise MessageRefused(f"'{key}' does not give the classes of each label")
    return {label: tuple(names) for label, names in found.items()}


def check_encoder(content: Anything) -> Published:
    """A published encoder whose digest is that of its content."""
    check_keys(content, ("encoder", "about"))
    about, arrays = content["about"], content["encoder"]
    check_keys(about, ("params", "schema", "digest"), "encoder")
    params, schema = object_of(about, "params"), object_of(about, "schema")
    tensors = {str(name): restored(plain_array(array, str(name)[:60], WEIGHTS)) for name, array in arrays.items()}
    if not tensors:
        raise MessageRefused("its encoder is empty")
    for name, tensor in tensors.items():
        _finite(tensor, name[:60])
    encoder = Published(params, schema, tensors)
    if text_of(about, "digest") != encoder.digest:
        raise MessageRefused("the encoder is not the one that its digest names")
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
    """A party's representations and labels, and nothing else.

    ``classes`` gives the labels that must come with their numbers of classes; ``held_out`` the number of further
    representations (vertical), None if there must be none.
    """
    check_keys(content, ("shared", "about"))
    about, arrays = content["about"], content["shared"]
    check_keys(about, ("encoder", "schema", "wire"), "description")
    if text_of(about, "encoder") != encoder:
        raise MessageRefused("it used another encoder than the published one")
    if text_of(about, "schema") != schema:
        raise MessageRefused("its records have another schema than the initiator's")
    if text_of(about, "wire") != wire:
        raise MessageRefused("its numbers have another precision than was asked for")
    return check_arrays(arrays, wire=wire, rows=rows, classes=classes, held_out=held_out)


def check_arrays(
    arrays: Anything, *, wire: str, rows: int | None, classes: Mapping[str, int], held_out: int | None
) -> Shared:
    """The arrays of one party's share: expected names, kinds, shapes, finite values, codes in range."""
    scale = ("low", "step") if counted(wire) else ()
    names = ["z", *scale, *(["held-out"] if held_out is not None else []), *(f"label.{label}" for label in classes)]
    check_keys(arrays, names, "share")
    kind = (sent_dtype(wire),)
    scales = {name: _finite(plain_array(arrays[name], name, ("float32",), (None,)), name) for name in scale}
    width = len(scales["low"]) if scale else None
    codes = plain_array(arrays["z"], "z", kind, (rows, None if width is None else sent_width(wire, width)))
    width = codes.shape[1] if width is None else width
    if not 1 <= width <= MOST_WIDTH or not len(codes):
        raise MessageRefused(f"'z' has {len(codes)} rows of {width} numbers")
    if scale and len(scales["step"]) != width:
        raise MessageRefused("'step' has another length than 'low'")
    z = _finite(unpacked(codes, wire, **scales), "z")
    further = None
    if held_out is not None:
        codes = plain_array(arrays["held-out"], "held-out", kind, (held_out, codes.shape[1]))
        further = _finite(unpacked(codes, wire, **scales), "held-out")
    return Shared(z, _codes(arrays, len(z), classes), further, arrays)


def check_labels(arrays: Anything, *, rows: int, classes: Mapping[str, int]) -> dict[str, IntArray]:
    """The labels that one party gives to all (vertical)."""
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
    """The figures a party reports: two counts, of which it has named one at the door, and shares between 0 and 1."""
    check_keys(content, ("metrics",))
    found = dict(content["metrics"])
    if len(found) > 1000 or any(len(str(name)) > 200 for name in found):
        raise MessageRefused("its report is too long")
    if not all(isinstance(value, (int, float)) and math.isfinite(value) for value in found.values()):
        raise MessageRefused("its report holds something else than finite numbers")
    if found.get("held-out") != held_out:
        raise MessageRefused(f"it did not test on the {held_out} held-out records that it spoke of")
    if not all(0.0 <= value <= 1.0 for name, value in found.items() if name not in ("rows", "held-out")):
        raise MessageRefused("its report holds a figure that is not between 0 and 1")
    return {str(name): float(value) for name, value in found.items()}


def _finite(values: npt.NDArray[Any], name: str) -> Any:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise MessageRefused(f"'{name}' holds NaN or infinite values")
    return values
