"""The manifest of a bundle: what stands in the documentation is read, and what is wrong is one sentence."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.errors import DataError
from sfumato.deploy.manifest import parse_manifest, read_bundle

DOCS = Path(__file__).parents[2] / "docs" / "bundle.md"


def documented() -> dict[str, Any]:
    text = re.search(r"```json\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert text is not None
    example: dict[str, Any] = json.loads(re.sub(r'"([0-9a-f]{4})…"', lambda found: f'"{found[1] * 16}"', text[1]))
    return example


def test_the_documented_example_is_a_manifest() -> None:
    found = parse_manifest(documented())
    assert found.program("cloud").inputs[0].row == (64, 4, 4)
    assert found.labels[0].width == 10
    assert not found.encrypted


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def act(manifest: dict[str, Any]) -> None:
        *way, last = [int(part) if part.isdigit() else part for part in path.split("/")]
        at: Any = manifest
        for step in way:
            at = at[step]
        at[last] = value

    return act


WRONG = {
    "another format": change("format", "zip"),
    "a newer version": change("version", 2),
    "a way out of the folder": change("programs/device/file", "../device.onnx"),
    "an absolute path": change("programs/device/file", "/etc/passwd"),
    "a hidden file": change("files", {".bashrc": "a" * 64}),
    "a file of two programs": change("programs/cloud/file", "device.onnx"),
    "the manifest as a program": change("programs/cloud/file", "manifest.json"),
    "an odd program": change("programs/exploit", {}),
    "no device half": change("programs", {}),
    "no digest": change("programs/device/sha256", "abc"),
    "a huge record": change("programs/device/outputs/0/shape", [-1, 2**20, 2**20]),
    "a fixed batch": change("programs/device/outputs/0/shape", [5, 64]),
    "an empty axis": change("programs/device/outputs/0/shape", [-1, 0]),
    "a shape of text": change("programs/device/outputs/0/shape", [-1, "64"]),
    "an odd dtype": change("programs/device/inputs/0/dtype", "complex64"),
    "the record in the cloud": change("programs/cloud/inputs/0/source", "record"),
    "records of another shape": change("preprocessing/shape", [1, 32, 32]),
    "labels of another width": change("labels", [{"name": "digit", "classes": ["0", "1"]}]),
    "one class": change("labels/0/classes", ["0"]),
    "a company without rows": change(
        "company", {"rows": 2, "reflections": True, "grouped": True, "kept": True, "records": "('image',)"}
    ),
    "a list for a table": change("guarantee", []),
    "true for a number": change("programs/device/bytes", True),
    "an endless range": change("programs/device/inputs/0/range", [0, float("inf")]),
}


@pytest.mark.parametrize("fault", sorted(WRONG))
def test_a_wrong_manifest_is_one_sentence(fault: str) -> None:
    manifest = copy.deepcopy(documented())
    WRONG[fault](manifest)
    with pytest.raises(DataError, match=r"^manifest\.json[^\n]*\.$"):
        parse_manifest(manifest)


@pytest.mark.parametrize("raw", ["", "[]", "{" * 5000, '{"format": "sfumato-bundle"}', "\0"])
def test_what_is_no_manifest_is_one_sentence(tmp_path: Path, raw: str) -> None:
    (tmp_path / "manifest.json").write_text(raw)
    with pytest.raises(DataError, match=r"^[^\n]*\.$"):
        read_bundle(tmp_path)


def test_a_folder_without_manifest_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="sfumato export"):
        read_bundle(tmp_path)


def test_a_manifest_is_read_without_torch_and_numpy() -> None:
    code = "import sfumato.deploy.manifest, sys; sys.exit(bool({'torch', 'numpy', 'onnx'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
