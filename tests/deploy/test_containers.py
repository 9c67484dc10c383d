"""The files for containers, as far as they can be checked without one: parsed, and their commands run directly."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path
from typing import Any

import pytest
import yaml
from benchmarks.made_bundle import write_bundle
from benchmarks.service_process import SRC, started

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "deploy"
_ONLY = """
import importlib.abc, runpy, sys
allowed = set(sys.argv.pop(1).split(","))
class Only(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in allowed and top not in sys.stdlib_module_names and not top.startswith("_"):
            raise ModuleNotFoundError(f"not in the image: {name}", name=name)
sys.meta_path.insert(0, Only())
runpy.run_module("sfumato", run_name="__main__", alter_sys=True)
"""


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n\s*", "", (FOLDER / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def only(name: str) -> str:
    """The last instruction of that name."""
    return [rest for found, rest in instructions() if found == name][-1]


def needed() -> set[str]:
    lines = (FOLDER / "requirements.txt").read_text().splitlines()
    return {re.split(r"[<>=]", line)[0].lower() for line in lines if line and not line.startswith("#")}


def test_the_image_installs_what_the_extra_and_the_command_line_ask_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = set(project["optional-dependencies"]["deploy"]) | set(project["dependencies"])
    lines = (FOLDER / "requirements.txt").read_text().splitlines()
    for line in (line for line in lines if line and not line.startswith("#")):
        assert line in asked, f"{line} is not what pyproject.toml says"
    extra = {re.split(r"[<>=]", line)[0] for line in project["optional-dependencies"]["deploy"]}
    assert extra - needed() == {"onnx", "onnxscript"}, "what sfumato export needs, and nothing else, stays out"


def closure(names: set[str]) -> set[str]:
    """Distributions that pip would install for these."""
    found: set[str] = set()
    todo = list(names)
    while todo:
        name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
        if name in found:
            continue
        try:
            wants = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        found.add(name)
        todo += [re.split(r"[ ;<>=!\[(~]", want)[0] for want in wants if "extra ==" not in want]
    return found


def test_the_images_entry_point_serves_with_nothing_but_what_the_image_has(tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "bundle")
    entry = json.loads(only("ENTRYPOINT"))
    assert entry[:3] == ["sfumato", "serve", "/bundle"]
    words = [str(bundle) if word == "/bundle" else word for word in entry[1:]]
    port = words.index("--port") + 1
    assert f":{words[port]}/" in only("HEALTHCHECK")
    assert only("EXPOSE") == words[port]
    image = closure(needed())
    allowed = {
        top for top, names in packages_distributions().items() if {n.lower().replace("_", "-") for n in names} & image
    }
    assert "torch" not in allowed
    words[port] = "0"
    words[words.index("0.0.0.0")] = "127.0.0.1"
    command = [sys.executable, "-c", _ONLY, ",".join(sorted(allowed | {"sfumato"})), *words]
    check = json.loads(only("HEALTHCHECK").partition("CMD ")[2])
    with started(command) as service:
        asked = [sys.executable, *check[1:-1], check[-1].replace("127.0.0.1:8080", service.netloc)]
        assert subprocess.run(asked, check=False).returncode == 0
        service.stop()
        assert subprocess.run(asked, check=False, stderr=subprocess.DEVNULL).returncode != 0


def test_the_image_runs_as_nobody_special_and_copies_only_what_exists() -> None:
    assert int(only("USER")) >= 10_000
    ignored = (FOLDER / "Dockerfile.dockerignore").read_text().splitlines()
    assert ignored[0] == "*"
    for name, rest in instructions():
        if name == "COPY" and "--from" not in rest:
            *sources, _ = shlex.split(rest)
            for source in sources:
                assert (ROOT / source).exists(), source
                assert f"!{source}" in ignored


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def test_compose_and_prometheus_fit_the_image() -> None:
    composed, scraped = documents("compose.yaml")[0], documents("prometheus.yaml")[0]
    service = composed["services"]["sfumato"]
    assert (FOLDER / service["build"]["context"] / service["build"]["dockerfile"]).resolve() == FOLDER / "Dockerfile"
    assert service["volumes"][0].split(":")[1] == "/bundle"
    assert service["ports"][0].rpartition(":")[2] == only("EXPOSE")
    for one in composed["services"].values():
        assert set(one["secrets"]) <= set(composed["secrets"])
    job = scraped["scrape_configs"][0]
    assert job["static_configs"][0]["targets"] == [f"sfumato:{only('EXPOSE')}"]
    assert job["authorization"]["credentials_file"].rpartition("/")[2] in composed["services"]["prometheus"]["secrets"]


def test_kserve_runs_a_command_that_exists_and_probes_addresses_that_answer(tmp_path: Path) -> None:
    runtime, service = documents("kserve.yaml")
    container = runtime["spec"]["containers"][0]
    assert service["spec"]["predictor"]["model"]["runtime"] == runtime["metadata"]["name"]
    assert service["spec"]["predictor"]["model"]["modelFormat"]["name"] in {
        one["name"] for one in runtime["spec"]["supportedModelFormats"]
    }
    tokens = tmp_path / "tokens"
    tokens.write_text("a-token-of-the-cluster\n")
    places = {"/mnt/models": str(write_bundle(tmp_path / "b")), "/etc/sfumato/tokens": str(tokens), "8080": "0"}
    words = [places.get(word, word) for word in (*container["command"], *container["args"])]
    words[words.index("0.0.0.0")] = "127.0.0.1"
    with started([sys.executable, "-m", *words]) as running:
        for probe in ("readinessProbe", "livenessProbe"):
            path = container[probe]["httpGet"]["path"]
            assert running.exchange(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())[0] == 200


@pytest.mark.parametrize("option", ["--token-file", "--host", "--port"])
def test_the_options_in_the_files_are_options_of_the_command(option: str) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "sfumato", "serve", "--help"], env={**os.environ, "PYTHONPATH": str(SRC)},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert option in said
