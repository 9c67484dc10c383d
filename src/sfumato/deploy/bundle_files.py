"""The files of a bundle that are no programs: manifest, card and digests."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import sfumato
from sfumato.core.ports import Port
from sfumato.core.run_folder import write_json
from sfumato.core.schema import Schema
from sfumato.data.encoding import audio
from sfumato.deploy.manifest import FORMAT, MANIFEST, VERSION
from sfumato.deploy.onnx_programs import OPSET
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.halves import Half, Halves

CARD, SUMS = "card.md", "SHA256SUMS"


def write_manifest(
    folder: Path,
    name: str,
    mechanism: Mechanism,
    halves: Halves,
    programs: Mapping[str, Half],
    quantised: Sequence[str] = (),
) -> None:
    """``manifest.json`` for the programs in ``folder``, and nothing of the records that they were fitted to."""
    schema = mechanism.schema_
    asked = () if halves.device is None else halves.device.inputs
    write_json(
        folder / MANIFEST,
        {
            "format": FORMAT,
            "version": VERSION,
            "name": name,
            "mechanism": mechanism.name,
            "programs": {
                part: _program_json(folder / f"{part}.onnx", half, part in quantised) for part, half in programs.items()
            },
            "preprocessing": preprocessing(schema),
            "labels": [_label_json(schema, label) for label in halves.labels],
            "private": [
                _label_json(schema, label) for label in schema.private if any(p.source == "private" for p in asked)
            ],
            "company": None if halves.company is None else dict(vars(halves.company)),
            "guarantee": mechanism.guarantee().to_json(),
            "traits": mechanism.traits.to_json(),
            "versions": _versions(),
            "files": {CARD: digest(folder / CARD)},
        },
    )


def write_sums(folder: Path) -> None:
    """``SHA256SUMS`` of every other file."""
    files = sorted(file for file in folder.iterdir() if file.is_file() and file.name != SUMS)
    (folder / SUMS).write_text("".join(f"{digest(file)}  {file.name}\n" for file in files))


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def preprocessing(schema: Schema) -> dict[str, Any]:
    """How a file becomes a record (docs/bundle.md)."""
    plain = schema.to_json()
    if schema.is_vectors:
        ends = {"low": [one.low for one in schema.columns], "high": [one.high for one in schema.columns]}
        strict = any(column.strict for column in schema.columns)
        return {"kind": "vectors", "shape": plain["shape"], "column": schema.x_columns[0], **ends, "strict": strict}
    found = {"kind": schema.kind, "shape": plain["shape"]}
    if schema.kind == "signal":
        each = plain["ranges"] * (schema.shape[0] if len(schema.ranges) == 1 else 1)  # one for all, or one each
        return {**found, "ranges": each, "strict": schema.strict}
    if schema.kind == "audio":
        decibels = {"low_db": audio.LOW_DB, "high_db": audio.HIGH_DB, "window_seconds": audio.WINDOW_SECONDS}
        return {**found, **plain["audio"], **decibels}
    return {**found, "columns": plain["columns"]} if schema.kind == "table" else found


def _program_json(path: Path, half: Half, quantised: bool) -> dict[str, Any]:
    return {
        "file": path.name,
        "sha256": digest(path),
        "bytes": path.stat().st_size,
        "opset": OPSET,
        "quantised": quantised,
        "inputs": [_port_json(port) for port in half.inputs],
        "outputs": [_port_json(half.output)],
    }


def _port_json(port: Port) -> dict[str, Any]:
    keyed = None if port.keyed is None else {"purposes": list(port.keyed.purposes), "by": port.keyed.by}
    said = {**vars(port), "shape": list(port.shape), "keyed": keyed}
    said["range"] = None if port.range is None else list(port.range)
    given = port.source is not None
    return {name: value for name, value in said.items() if given or name not in ("source", "law", "keyed")}


def _label_json(schema: Schema, label: str) -> dict[str, Any]:
    scale = schema.numbers.get(label)
    if scale is None:
        return {"name": label, "classes": list(schema.classes(label))}
    return {"name": label, "number": {"mean": scale.mean, "deviation": scale.deviation}}


def _versions() -> dict[str, str]:
    import onnx
    import torch

    return {"sfumato": sfumato.__version__, "torch": torch.__version__, "onnx": onnx.__version__}
