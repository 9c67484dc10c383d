"""Standard clients get the network's answers, whatever form they ask in."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from benchmarks.made_bundle import NAME, WIDTH, answer, write_bundle
from benchmarks.service_process import Running, running

triton = pytest.importorskip("tritonclient.http")
X = np.random.default_rng(0).normal(size=(5, WIDTH)).astype(np.float32)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(bundle=write_bundle(tmp_path_factory.mktemp("bundle"))) as found:
        yield found


def asked(x: np.ndarray = X, **more: object) -> dict[str, object]:
    tensor = {"name": "payload", "datatype": "FP32", "shape": list(x.shape), "data": x.ravel().tolist()}
    return {"inputs": [tensor], **more}


def test_tritonclient_reads_health_and_metadata(service: Running) -> None:
    client = triton.InferenceServerClient(service.netloc)
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready(NAME)
    assert client.is_model_ready(NAME, "1")
    assert not client.is_model_ready("other")
    assert client.get_server_metadata()["extensions"] == ["binary_tensor_data"]
    about = client.get_model_metadata(NAME)
    assert about["inputs"] == [{"name": "payload", "datatype": "FP32", "shape": [-1, WIDTH]}]
    assert about["outputs"][0]["name"] == "scores"


@pytest.mark.parametrize("packed", [None, "gzip", "deflate"])
@pytest.mark.parametrize("binary_out", [True, False])
@pytest.mark.parametrize("binary_in", [True, False])
def test_tritonclient_gets_the_networks_answers(
    service: Running, binary_in: bool, binary_out: bool, packed: str | None
) -> None:
    x = np.tile(X, (40, 1))  # large enough to be worth compressing
    given = triton.InferInput("payload", x.shape, "FP32")
    given.set_data_from_numpy(x, binary_data=binary_in)
    client = triton.InferenceServerClient(service.netloc)
    found = client.infer(
        NAME,
        [given],
        outputs=[triton.InferRequestedOutput("scores", binary_data=binary_out)],
        request_id="mine",
        model_version="1",
        request_compression_algorithm=packed,
        response_compression_algorithm=packed,
    )
    np.testing.assert_allclose(found.as_numpy("scores"), answer(x), atol=1e-4)
    assert found.get_response()["id"] == "mine"


def test_tritonclient_may_leave_the_outputs_to_the_server(service: Running) -> None:
    given = triton.InferInput("payload", X.shape, "FP32")
    given.set_data_from_numpy(X)
    client = triton.InferenceServerClient(service.netloc)
    np.testing.assert_allclose(client.infer(NAME, [given]).as_numpy("scores"), answer(X), atol=1e-4)


def test_tritonclient_reports_refusals_in_our_words(service: Running) -> None:
    given = triton.InferInput("payload", [1, 3], "FP32")
    given.set_data_from_numpy(np.zeros((1, 3), np.float32))
    with pytest.raises(Exception, match=r"the shape must be \[rows, 8\]"):
        triton.InferenceServerClient(service.netloc).infer(NAME, [given])


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_curl_gets_the_networks_answers(service: Running, tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text(json.dumps(asked(id="a")))
    (tmp_path / "request.gz").write_bytes(gzip.compress(json.dumps(asked()).encode()))
    url = f"{service.url}/v2/models/{NAME}/infer"
    for words in (
        ["--data-binary", f"@{tmp_path}/request.json"],
        ["--data-binary", f"@{tmp_path}/request.json", "--compressed"],
        ["--data-binary", f"@{tmp_path}/request.gz", "-H", "Content-Encoding: gzip"],
        ["--data-binary", f"@{tmp_path}/request.json", "-H", "Transfer-Encoding: chunked"],
        ["--data-binary", f"@{tmp_path}/request.json", "-H", "Expect: 100-continue", "--http1.0"],
    ):
        said = subprocess.run(["curl", "-sS", "--fail", *words, url], capture_output=True, check=True).stdout
        found = json.loads(said)["outputs"][0]
        np.testing.assert_allclose(np.reshape(found["data"], found["shape"]), answer(X), atol=1e-4)


def test_data_may_be_nested_as_the_shape_says(service: Running) -> None:
    tensor = {"name": "payload", "datatype": "FP32", "shape": list(X.shape), "data": X.tolist()}
    said = httpx.post(f"{service.url}/v2/models/{NAME}/infer", json={"inputs": [tensor]}).json()
    np.testing.assert_allclose(np.reshape(said["outputs"][0]["data"], (-1, 4)), answer(X), atol=1e-4)


def test_no_outputs_asked_for_means_all(service: Running) -> None:
    for empty in (None, []):
        said = httpx.post(f"{service.url}/v2/models/{NAME}/infer", json=asked(outputs=empty)).json()
        assert [one["name"] for one in said["outputs"]] == ["scores"]


def test_deflate_without_its_header_is_read_too(service: Running) -> None:
    packer = zlib.compressobj(wbits=-15)
    body = packer.compress(json.dumps(asked()).encode()) + packer.flush()
    url = f"{service.url}/v2/models/{NAME}/infer"
    assert httpx.post(url, content=body, headers={"content-encoding": "deflate"}).status_code == 200


def test_many_clients_at_once_each_get_their_own_answer(service: Running) -> None:
    from concurrent.futures import ThreadPoolExecutor

    draw = np.random.default_rng(1)
    xs = [draw.normal(size=(rows, WIDTH)).astype(np.float32) for rows in draw.integers(1, 32, 200)]

    def ask(x: np.ndarray) -> np.ndarray:
        with httpx.Client() as client:
            said = client.post(f"{service.url}/v2/models/{NAME}/infer", json=asked(x)).json()
        return np.reshape(said["outputs"][0]["data"], said["outputs"][0]["shape"])

    with ThreadPoolExecutor(8) as pool:
        for x, found in zip(xs, pool.map(ask, xs), strict=True):
            np.testing.assert_allclose(found, answer(x), atol=1e-3)


def test_the_page_and_the_description_need_nothing_from_elsewhere(service: Running) -> None:
    page = httpx.get(f"{service.url}/docs")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "<script" not in page.text
    assert "http://" not in page.text.replace(service.url, "")
    told = httpx.get(f"{service.url}/openapi.json").json()
    assert f"/v2/models/{NAME}/infer" in told["paths"]
    example = told["components"]["schemas"]["infer_request"]["examples"][0]
    assert httpx.post(f"{service.url}/v2/models/{NAME}/infer", json=example).status_code == 200


def test_metrics_count_what_was_served_and_refused(service: Running) -> None:
    url = f"{service.url}/v2/models/{NAME}/infer"
    httpx.post(url, json=asked())
    httpx.post(url, content=b"no json")
    page = httpx.get(f"{service.url}/metrics").text
    figures = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    route = "/v2/models/{model}/infer"
    assert float(figures[f'sfumato_requests_total{{route="{route}",status="200"}}']) >= 1
    assert float(figures['sfumato_refused_total{reason="bad-request"}']) >= 1
    assert float(figures["sfumato_rows_total"]) >= 5
    assert float(figures["sfumato_held_bytes"]) == 0


def test_the_log_holds_no_payload_and_no_word_of_a_client(service: Running) -> None:
    told = {"id": "my-secret-id", **asked(np.full((1, WIDTH), 0.123456, np.float32))}
    httpx.post(f"{service.url}/v2/models/{NAME}/infer", json=told, headers={"user-agent": "my-secret-agent"})
    httpx.post(f"{service.url}/v2/models/my-secret-model/infer?q=my-secret-query", json=told)
    httpx.post(f"{service.url}/my-secret-path", json=told)
    assert service.events("request")
    said = "".join(service.lines)
    assert "my-secret" not in said
    assert "0.12345" not in said
    assert "127.0.0.1:" not in said.replace(service.url, "")
