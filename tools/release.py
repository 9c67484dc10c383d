"""Everything that a version consists of, built and tried: python tools/release.py [--python 3.11 --python 3.12 …]

Writes wheel and sdist, a bill of materials (CycloneDX), the licences of all dependencies and digests to ``dist/``.
Before that the wheel is installed into a clean environment of every Python asked for, with the newest dependencies, and
once more with the oldest that ``pyproject.toml`` allows; in each the walk of ``tools/walk.py`` has to succeed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST, BUILD = ROOT / "dist", ROOT / "build" / "release"
EXTRAS = "demo,deploy"
_LOWER = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?>=([0-9.]+)")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--python", action="append", help="An interpreter: python3.12, or a path. Repeatable.")
    asked.add_argument("--newest-only", action="store_true", help="Leave out the walk with the oldest dependencies.")
    given = asked.parse_args()
    wheel = build()
    environments = []
    for python in given.python or [sys.executable]:
        environments.append(walked(wheel, python, "newest"))
    if not given.newest_only:
        walked(wheel, (given.python or [sys.executable])[0], "oldest", oldest())
    write_papers(environments[0])
    print(f"{DIST}: {', '.join(sorted(file.name for file in DIST.iterdir()))}")


def build() -> Path:
    """Wheel and sdist in an empty ``dist``."""
    for folder in (DIST, BUILD):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(DIST)], cwd=ROOT, check=True)
    (wheel,) = DIST.glob("*.whl")
    return wheel


def oldest() -> Path:
    """A file of constraints: every lower bound of the core and of the extras that are walked, as the version itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(one for extra in ("synth", "demo", "deploy") for one in extras[extra])]
    file = BUILD / "oldest.txt"
    file.write_text("".join(f"{line}\n" for line in sorted(_exact(wanted))))
    return file


def _exact(requirements: Iterable[str]) -> Iterable[str]:
    for requirement in requirements:
        found = _LOWER.match(requirement)
        if found is not None:
            name, version = found.groups()
            yield f"{name}=={version}" if version.count(".") >= 2 else f"{name}=={version}.*"


def walked(wheel: Path, python: str, which: str, constraints: Path | None = None) -> Path:
    """A clean environment with the wheel, in which the walk succeeded; its interpreter."""
    folder = BUILD / f"{which}-{Path(python).name}"
    print(f"{folder.name}: install and walk", flush=True)
    subprocess.run([python, "-m", "venv", str(folder / "env")], check=True)
    inside = folder / "env" / "bin" / "python"
    bounds = [] if constraints is None else ["--constraint", str(constraints)]
    quiet = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([inside, "-m", "pip", "install", *quiet, *bounds, f"{wheel}[{EXTRAS}]"], check=True)
    subprocess.run([inside, "-m", "pip", "check"], check=True)
    subprocess.run([inside, ROOT / "tools" / "walk.py"], cwd=folder, check=True)
    return inside


def write_papers(python: Path) -> None:
    """Bill of materials, licences and digests, of the environment with the newest dependencies."""
    sbom = DIST / "sbom.cdx.json"
    subprocess.run(
        [sys.executable, "-m", "cyclonedx_py", "environment", str(python), "--output-file", str(sbom)], check=True
    )
    packages = next((python.parent.parent / "lib").glob("python*")) / "site-packages"
    rows = {f"| {one.name} | {one.version} | {_licence(one)} |" for one in distributions(path=[str(packages)])}
    lines = sorted(rows, key=str.lower)
    (DIST / "licences.md").write_text("| package | version | licence |\n|---|---|---|\n" + "\n".join(lines) + "\n")
    assert json.loads(sbom.read_text())["components"], "the bill of materials is empty"
    files = sorted(file for file in DIST.iterdir() if file.name != "SHA256SUMS")
    sums = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    (DIST / "SHA256SUMS").write_text("".join(sums))


def _licence(found: object) -> str:
    meta = getattr(found, "metadata", {})
    said = meta.get("License-Expression") or ""
    classified = [line.rpartition(" :: ")[2] for line in meta.get_all("Classifier") or () if line.startswith("License")]
    text = said or "; ".join(classified) or (meta.get("License") or "not stated")
    return " ".join(text.split("\n")[0].split())[:80].replace("|", "/")


if __name__ == "__main__":
    main()
