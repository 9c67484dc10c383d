"""The house's import rules: which room may use which."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import sfumato
from sfumato.attacks.registry import features_suite, membership_suite, rotations_suite, shared_suite
from sfumato.core.schema import Schema
from sfumato.mechanisms import names

ROOT = Path(sfumato.__file__).parent
MAY_IMPORT = {
    "core": set(),
    "data": {"core"},
    "nets": {"core"},
    "privacy": {"core"},
    "mechanisms": {"core", "nets", "privacy"},
    "attacks": {"core", "nets"},
    "auditing": {"core", "nets", "privacy", "attacks", "mechanisms"},
    "report": {"core"},
    "workflow": {"core", "data", "privacy", "mechanisms", "auditing", "report"},
    "testing": {"core", "data", "attacks", "mechanisms", "auditing", "workflow"},
    "parties": {"core", "data", "mechanisms", "workflow"},
    "scale": {"core", "data", "mechanisms", "workflow"},
    "deploy": {"core", "nets", "data", "attacks", "mechanisms", "auditing", "report", "workflow"},
    "device": {"core", "data", "mechanisms", "deploy"},
    "studies": {"core", "privacy", "mechanisms", "auditing", "report", "workflow", "parties"},
    "cli": {
        *("core", "data", "mechanisms", "auditing", "report", "workflow", "parties", "scale", "deploy", "device"),
        "studies",
    },
}


def imports(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("sfumato.")}


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_room_imports_only_what_it_may(room: str) -> None:
    files = list((ROOT / room).rglob("*.py"))
    assert files, f"room {room} is gone"
    for file in files:
        strangers = {name.split(".")[1] for name in imports(file)} - MAY_IMPORT[room] - {room}
        assert not strangers, f"{file.relative_to(ROOT)} must not import {sorted(strangers)}"


def test_every_room_has_a_rule() -> None:
    rooms = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms == set(MAY_IMPORT)


def test_the_page_on_architecture_shows_the_same_rules() -> None:
    docs = Path(__file__).parents[1] / "docs"
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", (docs / "architecture.md").read_text(), re.MULTILINE)
    shown = {room: set(re.findall(r"`(\w+)`", may)) for room, may in rows if room in MAY_IMPORT}
    assert shown == MAY_IMPORT
    drawn = set(re.findall(r'font-weight="700" fill="#17304f">(\w+)<', (docs / "architecture.svg").read_text()))
    assert drawn == set(MAY_IMPORT)


def test_attacks_never_import_mechanisms() -> None:
    rooms = "reconstruction.inverse_network attribute.probes reidentification.candidates masks.mask_attacks"
    code = f"import {', '.join(f'sfumato.attacks.{room}' for room in rooms.split())}, sys;"
    code += "sys.exit(any(name.startswith('sfumato.mechanisms') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_importing_sfumato_is_light() -> None:
    heavy = "{'torch', 'jinja2', 'sklearn', 'pyarrow', 'flwr', 'ray'}"
    code = f"import sfumato, sfumato.cli.main, sys; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_nothing_is_stored_as_pickle() -> None:
    for file in ROOT.rglob("*.py"):
        names = imports_of_any(file)
        assert not names & {"pickle", "joblib", "dill", "cloudpickle"}, file
        assert "torch.load(" not in file.read_text(), file


def test_no_class_is_defined_twice() -> None:
    found = Counter(
        node.name
        for file in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, times in found.items() if times > 1} == set()


def test_every_file_has_a_name_of_its_own() -> None:
    shared = {"__init__", "base", "mechanism", "mechanisms", "attacks", "registry", "auditing"}  # said by the folder
    found = Counter(file.stem for file in ROOT.rglob("*.py"))
    assert {name for name, times in found.items() if times > 1} <= shared


def known_names() -> set[str]:
    """Every mechanism and every attack by name."""
    schema = Schema("image", (1, 8, 8), utility={"u": ("a", "b")}, private={"p": ("a", "b")})
    suites = (
        *(features_suite(schema), rotations_suite(schema, ("u",)), shared_suite()),
        membership_suite(("u",)),
    )
    return {*names(), *(attack.name for attacks in suites for attack in attacks)}


@pytest.mark.parametrize("room", ["auditing", "report", "workflow"])
def test_no_room_asks_for_a_mechanism_or_an_attack_by_name(room: str) -> None:
    known = known_names()
    for file in (ROOT / room).rglob("*.py"):
        if file.name == "demo.py":  # which lists the points that it runs
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert node.value not in known, f"{file.relative_to(ROOT)}:{node.lineno} says '{node.value}'"


def imports_of_any(file: Path) -> set[str]:
    tree = ast.parse(file.read_text())
    plain = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return plain | {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


def test_tensors_are_made_where_the_device_is_chosen() -> None:
    """``torch.from_numpy`` passes by ``core.accelerator``: what it makes stays on the CPU, whatever the device."""
    made = [file for file in ROOT.rglob("*.py") if file.parent.name != "testing" and "from_numpy" in file.read_text()]
    assert not made, f"use torch.as_tensor in {made[0].relative_to(ROOT)}"
