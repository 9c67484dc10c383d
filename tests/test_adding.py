"""What docs/adding-a-mechanism.md says of files to touch is true: done in a copy of the tree."""

from __future__ import annotations

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "adding-a-mechanism.md"
PLUGIN = ROOT / "examples" / "plugin" / "src" / "sfumato_shuffle"
pytestmark = pytest.mark.slow


class Tree:
    """A copy of the sources that a contributor edits."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.package = folder / "src" / "sfumato"
        shutil.copytree(ROOT / "src" / "sfumato", self.package, ignore=shutil.ignore_patterns("__pycache__"))

    def write(self, file: str, text: str) -> None:
        (self.package / file).write_text(text)

    def insert(self, file: str, after: str, line: str) -> None:
        text = (self.package / file).read_text()
        assert text.count(after) == 1, f"{file} has no single line {after!r}"
        self.write(file, text.replace(after, f"{after}\n{line}"))

    def touched(self) -> set[str]:
        files = (file.relative_to(self.package) for file in self.package.rglob("*.py"))
        theirs = ROOT / "src" / "sfumato"
        return {
            str(file)
            for file in files
            if not (theirs / file).is_file() or not filecmp.cmp(theirs / file, self.package / file, shallow=False)
        }

    def sfumato(self, *words: str) -> None:
        secret = self.folder / "device.key"
        secret.write_bytes(bytes(range(32)))
        environment = {**os.environ, "PYTHONPATH": str(self.folder / "src"), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "sfumato", *words, "--quiet"],
            cwd=self.folder,
            env={**environment, "SFUMATO_DEVICE_SECRET": str(secret)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]

    def walk(self, mechanism: str) -> dict[str, object]:
        """Fit and audit; the worst of each threat."""
        data = ["--data", "digits", "--utility", "odd", "--private", "ge5", "--limit", "300"]
        self.sfumato("fit", mechanism, *data, "--out", "run")
        self.sfumato("audit", "run", "--effort", "smoke")
        worst: dict[str, object] = json.loads((self.folder / "run" / "scores.json").read_text())["worst"]
        return worst


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def stated(row: str) -> int:
    """How many files the page's table says that an addition to the tree touches."""
    found = re.search(rf"^\| {row} \|.*\| (\d) files:", PAGE.read_text(), re.MULTILINE)
    assert found is not None
    return int(found.group(1))


def test_plain_mechanism_touches_as_many_files_as_the_page_says(tree: Tree) -> None:
    example = re.search(r"^```python\n(from __future__.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    line = re.search(r"^\+(.*)$", PAGE.read_text(), re.MULTILINE)
    assert example is not None and line is not None
    tree.write("mechanisms/baselines/sketch.py", example.group(1))
    tree.insert("mechanisms/registry.py", '    "ran": "ran.mechanism:RAN",', line.group(1))
    assert "reconstruction" in tree.walk("sketch")
    assert len(tree.touched()) == stated("a plain mechanism") <= 3


def test_mechanism_with_a_secret_and_a_threat_touches_as_many_files_as_the_page_says(tree: Tree) -> None:
    tree.write("mechanisms/baselines/shuffle.py", (PLUGIN / "mechanism.py").read_text())
    tree.write("attacks/match_pixels.py", (PLUGIN / "attack.py").read_text())
    line = '    "shuffle": "baselines.shuffle:Shuffle",'
    tree.insert("mechanisms/registry.py", '    "ran": "ran.mechanism:RAN",', line)
    tree.insert("attacks/registry.py", "        ReidentifyByEncoder(),", "        MatchPixels(),")
    lazily = "    from sfumato.attacks.attribute.probes import KINDS, AttributeProbe, ResidualProbe"
    tree.insert("attacks/registry.py", lazily, "    from sfumato.attacks.match_pixels import MatchPixels")
    assert {"pixel-order", "reconstruction"} <= set(tree.walk("shuffle"))
    assert len(tree.touched()) == stated("a mechanism with a secret and a threat of its own") <= 5
