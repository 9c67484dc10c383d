"""``serve --playground``: the page and what it needs, and nothing that has to stay at the server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from benchmarks.made_bundle import NAME, WIDTH, answer, write_bundle
from starlette.testclient import TestClient
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.core.errors import DataError, SfumatoError, UsageError
from sfumato.deploy.manifest import read_bundle
from sfumato.deploy.serve import ServeSettings
from sfumato.deploy.serve.playground_page import create_playground, write_list


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A build of the page, as far as the server is concerned."""
    folder = tmp_path / "page"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>the page</title>")
    (folder / "assets" / "run.wasm").write_bytes(b"\0asm")
    return folder


def named(bundle: Path, name: str) -> Path:
    """A bundle of another name."""
    manifest = bundle / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "name": name}))
    return bundle


@pytest.fixture
def served(tmp_path: Path, page: Path) -> Iterator[TestClient]:
    first, second = write_bundle(tmp_path / "first"), named(write_bundle(tmp_path / "second"), "other")
    (second / "playground.json").write_text('{"knob": "λ", "value": "0.1"}')
    with TestClient(create_playground(ServeSettings(first), [second], page)) as client:
        yield client


def test_the_page_may_run_networks_and_ask_nobody_else(served: TestClient) -> None:
    found = served.get("/playground/")
    assert "the page" in found.text
    policy = found.headers["content-security-policy"]
    assert "default-src 'self'" in policy and "connect-src 'self'" in policy and "'wasm-unsafe-eval'" in policy
    assert "unsafe-inline" not in policy
    assert served.get("/playground", follow_redirects=False).headers["location"] == "/playground/"
    assert served.get("/playground/assets/run.wasm").headers["content-type"] == "application/wasm"


def test_every_bundle_is_listed_and_answers_where_the_list_says(served: TestClient) -> None:
    offers = {offer["name"]: offer for offer in served.get("/playground/bundles.json").json()["bundles"]}
    assert {name: (one["knob"], one["value"]) for name, one in offers.items()} == {
        NAME: ("", NAME),
        "other": ("λ", "0.1"),
    }
    x = np.random.default_rng(0).random((2, WIDTH)).astype(np.float32)
    body = {"inputs": [{"name": "payload", "datatype": "FP32", "shape": [2, WIDTH], "data": x.ravel().tolist()}]}
    for name, offer in offers.items():
        found = served.post(f"{offer['url']}/v2/models/{name}/infer", json=body).json()
        assert np.allclose(np.reshape(found["outputs"][0]["data"], (2, -1)), answer(x), atol=1e-4)


def test_device_halves_are_given_away_and_cloud_halves_are_not(served: TestClient) -> None:
    folder = "/playground/bundles/other"
    assert json.loads(served.get(f"{folder}/manifest.json").text)["name"] == "other"
    assert served.get(f"{folder}/device.onnx").content == b"a device half that nobody opens here"
    for file in ("cloud.onnx", "playground.json", "../first/cloud.onnx", "%2e%2e/first/cloud.onnx", "card.md", ""):
        refused = served.get(f"{folder}/{file}")
        assert refused.status_code == 404 and set(refused.json()) == {"error"}, file


@pytest.mark.parametrize("path", ["../manifest.json", "%2e%2e/%2e%2e/etc/passwd", "nothing.js", "assets"])
def test_what_is_no_file_of_the_page_is_not_found(served: TestClient, path: str) -> None:
    refused = served.get(f"/playground/{path}")
    assert refused.status_code == 404 and set(refused.json()) == {"error"}


def test_a_page_that_is_not_built_and_two_bundles_of_one_name_are_a_sentence(tmp_path: Path, page: Path) -> None:
    bundle = write_bundle(tmp_path / "bundle")
    with pytest.raises(UsageError, match="make playground"):
        create_playground(ServeSettings(bundle), page=tmp_path / "nowhere")
    with pytest.raises(DataError, match=f"two bundles are called '{NAME}'"):
        create_playground(ServeSettings(bundle), [write_bundle(tmp_path / "again")], page)


def test_a_service_that_cannot_start_stops_the_others(tmp_path: Path, page: Path) -> None:
    bundle = write_bundle(tmp_path / "bundle")
    broken = named(write_bundle(tmp_path / "broken", b"no network"), "broken")
    with pytest.raises(SfumatoError, match="broken"):
        create_playground(ServeSettings(bundle), [broken], page)


def test_serve_takes_one_bundle_unless_there_is_a_page(tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "bundle")
    result = CliRunner().invoke(app, ["serve", str(bundle), str(bundle)])
    assert isinstance(result.exception, UsageError) and "--playground" in str(result.exception)


def test_a_static_build_computes_cloud_halves_itself(tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "bundle")
    write_list([read_bundle(bundle)], tmp_path / "bundles.json")
    (offer,) = json.loads((tmp_path / "bundles.json").read_text())["bundles"]
    assert offer["url"] is None and offer["folder"] == f"./bundles/{NAME}/"


def test_the_page_knows_the_version_of_the_manifest() -> None:
    source = (Path(__file__).parents[2] / "playground" / "src" / "manifest.ts").read_text()
    from sfumato.deploy import manifest

    assert f"const VERSION = {manifest.VERSION};" in source
