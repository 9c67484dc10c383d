"""``manifest.json`` of a bundle, read and checked: pure Python, for device, server and exporter alike (docs/bundle.md).

What comes from outside is checked field by field, so that whoever holds a ``Manifest`` need not doubt it. Fields that
this version does not know are passed over; a newer ``version`` is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, Literal, get_args

from sfumato.core.documents import json_value
from sfumato.core.errors import DataError, unknown
from sfumato.core.ports import CompanyRule, DType, KeyedBy, Law, Port, Source
from sfumato.deploy.json_fields import FILE, Fields

__all__ = [
    "AnswerLabel", "Bundle", "CompanyRule", "KeyedBy", "Manifest", "Port", "Preprocessing", "Program", "parse_manifest",
    "read_bundle",
]  # fmt: skip

MANIFEST = "manifest.json"
FORMAT = "sfumato-bundle"
VERSION = 1
PROGRAMS = ("device", "cloud", "finish", "sampler", "attacker")
"""What a bundle may hold, in the order in which a record meets them."""

RecordKind = Literal["image", "signal", "audio", "table", "vectors"]

LARGEST_MANIFEST = 16 << 20
LARGEST_PROGRAM = 2**31 - 1
MOST_NUMBERS = 2**28
"""In a tensor of one record."""
MOST_AXES, MOST_TENSORS, MOST_LABELS, MOST_CLASSES = 8, 16, 1000, 100_000


@dataclass(frozen=True)
class Program:
    """An ONNX file and what goes in and out."""

    name: str
    file: str
    sha256: str
    bytes: int
    opset: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    quantised: bool = False

    def port(self, name: str) -> Port:
        """An input or output by name."""
        return next(one for one in (*self.inputs, *self.outputs) if one.name == name)

    def of_source(self, source: Source) -> tuple[Port, ...]:
        """The inputs that come from there."""
        return tuple(one for one in self.inputs if one.source == source)


@dataclass(frozen=True)
class AnswerLabel:
    """A label that is read, or hidden: its classes in the order of the scores, or the scale of a number."""

    name: str
    classes: tuple[str, ...] = ()
    mean: float = 0.0
    deviation: float = 1.0

    @property
    def width(self) -> int:
        """Scores that belong to it."""
        return len(self.classes) or 1


@dataclass(frozen=True)
class Preprocessing:
    """How a file becomes a record: ``shape``, and by kind the fields of docs/bundle.md in ``about``."""

    kind: RecordKind
    shape: tuple[int, ...]
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """Everything that ``manifest.json`` says."""

    name: str
    mechanism: str
    programs: Mapping[str, Program]
    preprocessing: Preprocessing
    labels: tuple[AnswerLabel, ...]
    private: tuple[AnswerLabel, ...]
    company: CompanyRule | None
    guarantee: Mapping[str, Any]
    traits: Mapping[str, Any]
    versions: Mapping[str, str]
    files: Mapping[str, str]

    @property
    def kind(self) -> RecordKind:
        return self.preprocessing.kind

    @property
    def encrypted(self) -> bool:
        """Whether the answer comes back encrypted, for ``finish`` to read."""
        return "finish" in self.programs

    def program(self, name: str) -> Program:
        """A program of the bundle; an error that says what is there if it is missing."""
        if name not in self.programs:
            raise DataError(
                f"bundle '{self.name}' ({self.mechanism}) has no program '{name}', only "
                f"{', '.join(self.programs)}: export a mechanism that has one."
            )
        return self.programs[name]


@dataclass(frozen=True)
class Bundle:
    """A folder whose manifest has been read and, unless told otherwise, whose files have been checked."""

    folder: Path
    manifest: Manifest

    def path(self, program: str) -> Path:
        """Where a program lies."""
        return self.folder / self.manifest.program(program).file


def read_bundle(folder: str | Path, *, programs: Sequence[str] | None = None) -> Bundle:
    """The bundle in a folder, with the digests of its programs checked: all of them, or those that are named.

    Raises:
        DataError: The folder is no bundle, or a file is missing or not the one that was exported.
    """
    place = Path(folder)
    path = place / MANIFEST
    try:
        if path.stat().st_size > LARGEST_MANIFEST:
            raise DataError(f"{path} is larger than {LARGEST_MANIFEST >> 20} MB: this is no manifest of a bundle.")
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{place} is no bundle, it has no {MANIFEST}: make one with 'sfumato export'.") from None
    except OSError as error:
        raise DataError(f"cannot read {path} ({error.strerror}): give the folder of a bundle.") from None
    manifest = parse_manifest(json_value(raw, str(path), "export the bundle again"), str(path))
    for name in manifest.programs if programs is None else programs:
        _check_file(place, manifest.program(name))
    return Bundle(place, manifest)


def _check_file(folder: Path, program: Program) -> None:
    """Raise ``DataError`` unless this is the file that was exported."""
    path = folder / program.file
    again = "export the bundle again or copy it whole"
    try:
        if path.is_symlink() or not path.is_file():
            raise DataError(f"{path} is missing or no plain file: {again}.")
        if path.stat().st_size != program.bytes:
            raise DataError(f"{path} has {path.stat().st_size} bytes, the manifest says {program.bytes}: {again}.")
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"cannot read {path} ({error.strerror}): {again}.") from None
    if found != program.sha256:
        raise DataError(f"{path} is not the file that was exported (SHA-256 {found[:12]}…): {again}.")


def parse_manifest(value: Any, where: str = MANIFEST) -> Manifest:
    """A manifest from plain JSON values; ``where`` is what messages call it."""
    top = Fields(value, where, "")
    if top.text("format") != FORMAT:
        raise top.fault("format", f"is not '{FORMAT}'")
    version = top.whole("version", 1, 2**31)
    if version > VERSION:
        raise DataError(f"{where} has version {version}, this sfumato reads up to {VERSION}: upgrade sfumato.")
    programs = {name: _program(name, top.table("programs").table(name)) for name in top.table("programs").names()}
    for name in programs:
        if name not in PROGRAMS:
            raise DataError(f"{where}: {unknown('program', name, PROGRAMS)}")
    if not {"device", "sampler"} & set(programs):
        raise top.fault("programs", "has neither a device half nor a sampler")
    found = Manifest(
        name=top.name("name"),
        mechanism=top.name("mechanism"),
        programs={name: programs[name] for name in PROGRAMS if name in programs},
        preprocessing=_preprocessing(top.table("preprocessing")),
        labels=_labels(top, "labels"),
        private=_labels(top, "private"),
        company=_company(top),
        guarantee=dict(top.table("guarantee").value),
        traits=dict(top.table("traits").value),
        versions={name: top.table("versions").text(name) for name in top.table("versions").names()},
        files=_files(top.table("files")),
    )
    _check_whole(found, top)
    return found


def _check_whole(found: Manifest, top: Fields) -> None:
    """What several fields say together."""
    files = [program.file for program in found.programs.values()]
    if len({MANIFEST, *files, *found.files}) != 1 + len(files) + len(found.files):
        raise top.fault("programs", "names a file twice")
    device = found.programs.get("device")
    if device is not None:
        for port in device.of_source("record"):
            if port.row != found.preprocessing.shape:
                raise top.fault("programs.device", f"takes records of {port.row}, not {found.preprocessing.shape}")
        width = sum(label.width for label in found.private)
        for port in device.of_source("private"):
            if port.row != (width,):
                raise top.fault("programs.device", f"takes {port.row} numbers of private labels, they have {width}")
    last = found.programs.get("finish") or found.programs.get("cloud")
    if last is not None and last.outputs[0].row != (sum(label.width for label in found.labels),):
        raise top.fault("labels", f"have other widths than the {last.outputs[0].row} scores of '{last.name}'")
    if (found.company is not None) != (device is not None and bool(device.of_source("company"))):
        raise top.fault("company", "is there without a device half that takes rows, or the other way round")


def _program(name: str, at: Fields) -> Program:
    inputs = tuple(_port(one, given=True) for one in at.tables("inputs", MOST_TENSORS))
    outputs = tuple(_port(one, given=False) for one in at.tables("outputs", MOST_TENSORS))
    names = [port.name for port in (*inputs, *outputs)]
    if not inputs or not outputs or len(set(names)) != len(names):
        raise at.fault("inputs", "needs inputs and outputs with names of their own")
    if name != "device" and (found := [port.name for port in inputs if port.source == "record"]):
        raise at.fault("inputs", f"would send the record itself ('{found[0]}') to '{name}'")
    return Program(
        name=name,
        file=at.file("file"),
        sha256=at.digest("sha256"),
        bytes=at.whole("bytes", 1, LARGEST_PROGRAM),
        opset=at.whole("opset", 1, 100),
        inputs=inputs,
        outputs=outputs,
        quantised=bool(at.value.get("quantised", False)),
    )


def _port(at: Fields, *, given: bool) -> Port:
    source: Source | None = at.choice("source", get_args(Source)) if given else None
    law: Law | None = at.choice("law", get_args(Law)) if source == "drawn" else None
    shape = at.wholes("shape", -1, MOST_NUMBERS, MOST_AXES)
    if not shape or shape[0] != -1 or min(shape[1:], default=1) < 1:
        raise at.fault("shape", "must begin with -1 and have lengths of at least 1 behind it")
    if prod(shape[1:]) > MOST_NUMBERS:
        raise at.fault("shape", f"has more than {MOST_NUMBERS} numbers a record")
    keyed = at.value.get("keyed")
    reach = at.value.get("range")
    grid = at.value.get("grid")
    return Port(
        name=at.name("name"),
        dtype=at.choice("dtype", get_args(DType)),
        shape=shape,
        axis=at.name("axis"),
        source=source,
        law=law,
        keyed=None if keyed is None else _keyed(at.table("keyed")),
        range=None if reach is None else at.pair("range"),
        grid=None if grid is None else at.number("grid"),
    )


def _keyed(at: Fields) -> KeyedBy:
    return KeyedBy(at.texts("purposes", 16), at.choice("by", ("record", "device")))


def _labels(top: Fields, name: str) -> tuple[AnswerLabel, ...]:
    found = []
    for at in top.tables(name, MOST_LABELS):
        number = at.value.get("number")
        if number is None:
            classes = at.texts("classes", MOST_CLASSES)
            if len(classes) < 2:
                raise at.fault("classes", "has fewer than two classes")
            found.append(AnswerLabel(at.text("name"), classes))
        else:
            scale = at.table("number")
            found.append(AnswerLabel(at.text("name"), (), scale.number("mean"), scale.number("deviation")))
    return tuple(found)


def _company(top: Fields) -> CompanyRule | None:
    if top.value.get("company") is None:
        return None
    at = top.table("company")
    return CompanyRule(
        rows=at.whole("rows", 2, 16),
        reflections=at.flag("reflections"),
        grouped=at.flag("grouped"),
        kept=at.flag("kept"),
        records=at.text("records"),
    )


def _preprocessing(at: Fields) -> Preprocessing:
    kind: RecordKind = at.choice("kind", get_args(RecordKind))
    shape = at.wholes("shape", 1, MOST_NUMBERS, MOST_AXES)
    if not shape or prod(shape) > MOST_NUMBERS:
        raise at.fault("shape", f"must have 1 to {MOST_NUMBERS} numbers")
    axes = {"image": 3, "audio": 3, "signal": 2, "table": 1, "vectors": 1}[kind]
    if len(shape) != axes:
        raise at.fault("shape", f"has {len(shape)} axes, records of kind {kind} have {axes}")
    if kind == "signal":
        if len(at.pairs("ranges")) != shape[0]:
            raise at.fault("ranges", f"must have a pair for each of {shape[0]} channels")
    elif kind == "audio":
        for name in ("rate", "seconds", "low_db", "high_db", "window_seconds"):
            at.number(name)
        if (at.whole("mels", 1, 4096), at.whole("frames", 1, 1 << 20)) != shape[1:]:
            raise at.fault("mels", "and frames must be the sides of the shape")
    elif kind == "vectors":
        low, high = at.numbers("low"), at.numbers("high")
        if (len(low), len(high)) != (shape[0], shape[0]):
            raise at.fault("low", f"and high must have {shape[0]} numbers each")
    elif kind == "table":
        widths = 0
        for column in at.tables("columns", MOST_CLASSES):
            column.text("name")
            numeric = column.choice("kind", ("numeric", "categorical")) == "numeric"
            column.number("low"), column.number("high")
            count = len(column.texts("categories", MOST_CLASSES))
            widths += (1 if numeric else count) + int(column.flag("nullable"))
        if widths != shape[0]:
            raise at.fault("columns", f"make {widths} numbers, the shape says {shape[0]}")
    about = {name: found for name, found in at.value.items() if name not in ("kind", "shape")}
    return Preprocessing(kind, shape, about)


def _files(at: Fields) -> dict[str, str]:
    for name in at.names():
        at.digest(name)
        if not FILE.fullmatch(name):
            raise at.fault(name, "is no plain file name")
    return {name: at.digest(name) for name in at.names()}
