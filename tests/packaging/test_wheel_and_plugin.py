"""The wheel, not the clone: installed into an environment of its own, with the plugin of ``examples/plugin``."""

from __future__ import annotations

import json
import os
import re
import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "examples" / "plugin"
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packaging")]


class Environment:
    """A fresh environment with the wheel of sfumato and the plugin; dependencies are those of this one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder / "env", with_pip=True)
        self.python = folder / "env" / "bin" / "python"
        packages = next((folder / "env" / "lib").glob("python*")) / "site-packages"
        (packages / "dependencies.pth").write_text(site.getsitepackages()[0] + "\n")
        offline = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation"]
        self.run("-m", "pip", "wheel", *offline, "--wheel-dir", str(folder), str(ROOT))
        (wheel,) = folder.glob("sfumato-*.whl")
        self.run("-m", "pip", "install", *offline, str(wheel), str(PLUGIN))

    def run(self, *words: str, **environment: str) -> str:
        done = subprocess.run(
            [str(self.python), *words],
            cwd=self.folder,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": "", **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def sfumato(self, *words: str) -> str:
        return self.run("-m", "sfumato", *words, SFUMATO_DEVICE_SECRET=str(self.folder / "device.key"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("fresh"))


@pytest.fixture(scope="module")
def walked(environment: Environment) -> Environment:
    """The plugin's mechanism through fit, audit, report and release."""
    data = ["--data", "digits", "--utility", "odd", "--private", "ge5", "--limit", "1200"]
    environment.sfumato("device", "init")
    environment.sfumato("fit", "shuffle", *data, "--out", "run", "--quiet")
    environment.sfumato("audit", "run", "--effort", "smoke", "--quiet")
    environment.sfumato("report", "run", "--out", "report.html")
    environment.sfumato("release", "run", "--unaudited", "--data", "digits", "--out", "outbox", "--quiet")
    return environment


def test_the_package_comes_from_the_wheel(environment: Environment) -> None:
    place = Path(environment.run("-c", "import sfumato; print(sfumato.__file__)").strip())
    assert place.is_relative_to(environment.folder)
    assert sys.prefix not in str(place)


def test_every_module_and_data_file_of_the_clone_is_in_the_wheel(environment: Environment) -> None:
    place = Path(environment.run("-c", "import sfumato; print(sfumato.__file__)").strip()).parent
    source = ROOT / "src" / "sfumato"
    wanted = {file.relative_to(source) for file in source.rglob("*") if file.is_file() and file.suffix != ".pyc"}
    assert {file for file in wanted if not (place / file).is_file()} == set()


def test_help_lists_the_parameters_of_the_plugin(environment: Environment) -> None:
    told = json.loads(environment.sfumato("fit", "shuffle", "--help-params", "--json"))
    assert told["share"]["default"] == 1.0 and told["share"]["allowed"] == "above 0 to 1"


def test_the_threat_of_the_plugin_is_scored_with_leakage(walked: Environment) -> None:
    scores = json.loads((walked.folder / "run" / "scores.json").read_text())
    worst = scores["worst"]["pixel-order"]
    assert worst["attack"] == "match-pixels" and worst["control"] == 1.0
    assert worst["value"] > 3 * worst["baseline"] and worst["ci"][0] > worst["baseline"]
    assert 0.0 < worst["leakage_ci"][0] <= worst["leakage"] <= worst["leakage_ci"][1] <= 1.0
    assert "reconstruction" in scores["worst"] and "attribute:ge5" in scores["worst"]
    assert scores["threats"]["pixel-order"]["title"] == "Pixel order"


def test_the_threat_of_the_plugin_has_its_own_column_in_the_report(walked: Environment) -> None:
    page = (walked.folder / "report.html").read_text()
    heads = re.findall(r'<th scope="col">([^<]*)</th>', page)
    assert "Pixel order" in heads
    assert "finds the places of" in page


def test_the_report_needs_no_plugin(walked: Environment) -> None:
    from sfumato.report import build_report

    page = build_report([walked.folder / "run"], walked.folder / "elsewhere.html").read_text()
    assert '<th scope="col">Pixel order</th>' in page


def test_the_secret_of_the_plugin_never_leaves(walked: Environment) -> None:
    secret = (walked.folder / "device.key").read_bytes()
    for place in ("run", "outbox", "report.html"):
        files = [walked.folder / place] if place.endswith(".html") else (walked.folder / place).rglob("*")
        for file in files:
            assert file.is_dir() or secret not in file.read_bytes(), file
            assert file.is_dir() or secret.hex().encode() not in file.read_bytes(), file


def test_the_plugin_keeps_the_promises_of_the_conformance_suites(environment: Environment) -> None:
    told = environment.run("-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", str(PLUGIN / "tests"))
    assert re.search(r"[2-9]\d passed", told)
