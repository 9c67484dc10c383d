"""Whatever a client sends, it gets a 4xx with one sentence, and the service goes on."""

from __future__ import annotations

import gzip
import json
import socket
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import numpy as np
import pytest
from benchmarks.made_bundle import NAME, WIDTH, write_bundle
from benchmarks.service_process import Running, read_answer, running

INFER = f"/v2/models/{NAME}/infer"
LIMIT = 64 * 1024
ROW = [0.5] * WIDTH
RAW = np.array([ROW], np.float32).tobytes()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    bundle = write_bundle(tmp_path_factory.mktemp("bundle"))
    with running(bundle=bundle, max_request=LIMIT, head_seconds=1.0, body_seconds=1.0, stall_seconds=1.0) as found:
        yield found
        assert found.process.poll() is None
        assert not found.events("failed")
        assert not found.strange_lines()


@pytest.fixture(autouse=True)
def still_serves(service: Running) -> Iterator[None]:
    """After every refusal a good request is served."""
    yield
    assert httpx.post(service.url + INFER, json=body()).status_code == 200


def tensor(**changes: Any) -> dict[str, Any]:
    whole = {"name": "payload", "datatype": "FP32", "shape": [1, WIDTH], "data": ROW, **changes}
    return {name: value for name, value in whole.items() if value is not None}


def body(**changes: Any) -> dict[str, Any]:
    return {"inputs": [tensor(**changes)]}


def refused(service: Running, status: int, content: bytes | dict[str, Any], **headers: str) -> str:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    found = httpx.post(service.url + INFER, content=raw, headers=named, timeout=20)
    assert found.status_code == status, found.text
    said = found.json()
    assert list(said) == ["error"]
    assert len(said["error"]) < 300
    assert "Traceback" not in said["error"]
    assert ".py" not in said["error"]
    return str(said["error"])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"3",
        b'"text"',
        b"{}",
        b"\xff\xfe\x00",
        b"\xef\xbb\xbf{}",
        b'{"inputs": NaN}',
        b'{"inputs": [' + b"9" * 5000 + b"]}",
        b"[" * 20_000,
        b'{"inputs":' * 6_000,
        b'{"inputs": []}',
        b'{"inputs": {}}',
        b'{"inputs": [1]}',
        json.dumps({"inputs": [tensor(), tensor()]}).encode(),
        json.dumps({"inputs": [tensor()], "outputs": 3}).encode(),
        json.dumps({"inputs": [tensor()], "outputs": [{"name": "other"}]}).encode(),
        json.dumps({"inputs": [tensor()], "outputs": [{"name": "scores"}] * 2}).encode(),
        json.dumps({"inputs": [tensor()], "outputs": [{"name": "scores", "parameters": []}]}).encode(),
        json.dumps({"inputs": [tensor()], "parameters": {"binary_data_output": "yes"}}).encode(),
        json.dumps({"inputs": [tensor()], "id": 7}).encode(),
        json.dumps({"inputs": [tensor()], "id": "x" * 1000}).encode(),
    ],
    ids=lambda raw: raw[:20].decode("latin-1"),
)
def test_malformed_json_is_refused(service: Running, content: bytes) -> None:
    refused(service, 400, content)


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"name": None},
        {"name": ["payload"]},
        {"name": "../../etc/passwd"},
        {"datatype": "FP64"},
        {"datatype": "BYTES"},
        {"datatype": None},
        {"datatype": {}},
        {"shape": [1, 7]},
        {"shape": [WIDTH]},
        {"shape": [1, WIDTH, 1]},
        {"shape": [0, WIDTH]},
        {"shape": [-1, WIDTH]},
        {"shape": [2**62, WIDTH]},
        {"shape": [10**30, WIDTH]},
        {"shape": [1, 10**12]},
        {"shape": [1.0, WIDTH]},
        {"shape": [True, WIDTH]},
        {"shape": "8"},
        {"shape": None},
        {"shape": [1] * 5000},
        {"data": None},
        {"data": 3},
        {"data": {}},
        {"data": "0.5"},
        {"data": []},
        {"data": ROW[:-1]},
        {"data": [*ROW, 1.0]},
        {"data": [ROW, ROW]},
        {"data": [[0.5], *ROW[1:]]},
        {"data": ["0.5"] * WIDTH},
        {"data": [None] * WIDTH},
        {"data": [True] * WIDTH},
        {"data": [10**400] * WIDTH},
        {"data": [{}] * WIDTH},
        {"data": [1e39, *ROW[1:]]},
        {"parameters": []},
        {"parameters": {"shared_memory_region": "x"}},
        {"parameters": {"binary_data_size": 32}},
        {"parameters": {"binary_data_size": -1}, "data": None},
        {"parameters": {"binary_data_size": True}, "data": None},
    ],
    ids=str,
)
def test_wrong_tensors_are_refused(service: Running, changes: dict[str, Any]) -> None:
    refused(service, 400, body(**changes))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_no_number_but_a_finite_one_is_taken(service: Running, number: str) -> None:
    refused(service, 400, json.dumps(body()).replace("0.5", number, 1).encode())


def framed(size: int | str = len(RAW), **changes: Any) -> bytes:
    return json.dumps(body(data=None, parameters={"binary_data_size": size}, **changes)).encode()


@pytest.mark.parametrize(
    ("raw", "more"),
    [
        (b"", {}),
        (RAW[:-1], {}),
        (RAW + b"\0", {}),
        (RAW[:16], {"size": 16}),
        (RAW * 2, {"size": 64}),
        (RAW, {"size": 2**60}),
        (RAW, {"size": "32"}),
        (RAW * 2, {"shape": [2**40, WIDTH], "size": 64}),
        (np.array([[np.nan, *ROW[1:]]], np.float32).tobytes(), {}),
        (np.array([[np.inf, *ROW[1:]]], np.float32).tobytes(), {}),
    ],
)
def test_binary_tensors_of_the_wrong_length_or_not_finite_are_refused(
    service: Running, raw: bytes, more: dict[str, Any]
) -> None:
    head = framed(**more)
    refused(service, 400, head + raw, inference_header_content_length=str(len(head)))


@pytest.mark.parametrize(
    "length", [b"-1", b"0", b"1", b"99999", b"1e3", b"", b"+5", b"\xb2", "٣".encode(), b"9" * 400, b"0x10"]
)
def test_a_wrong_length_of_the_json_is_refused(service: Running, length: bytes) -> None:
    head = framed()
    found = httpx.post(
        service.url + INFER,
        content=head + RAW,
        headers=[(b"inference-header-content-length", length)],
    )
    assert found.status_code == 400
    assert "error" in found.json()


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_a_zip_bomb_is_stopped_at_the_limit(service: Running, pack: Any) -> None:
    encoding = "gzip" if pack is gzip.compress else "deflate"
    bomb = pack(b"0" * (60 * 2**20))
    assert len(bomb) < 64 * 1024
    assert "unpacked" in refused(service, 413, bomb, content_encoding=encoding)


def test_a_nest_of_empty_gzip_members_is_refused(service: Running) -> None:
    refused(service, 400, gzip.compress(b"") * 3000, content_encoding="gzip")


@pytest.mark.parametrize(
    ("content", "encoding", "status"),
    [
        (b"no gzip at all", "gzip", 400),
        (gzip.compress(json.dumps(body()).encode())[:-9], "gzip", 400),
        (zlib.compress(json.dumps(body()).encode())[:-6], "deflate", 400),
        (zlib.compress(json.dumps(body()).encode()) + b"more", "deflate", 400),
        (gzip.compress(json.dumps(body()).encode()) + b"more", "gzip", 400),
        (b"", "gzip", 400),
        (b"x", "br", 415),
        (b"x", "gzip, gzip", 415),
    ],
)
def test_broken_compression_is_refused(service: Running, content: bytes, encoding: str, status: int) -> None:
    refused(service, status, content, content_encoding=encoding)


def test_more_rows_than_may_wait_are_refused(service: Running) -> None:
    rows = 1025
    head = framed(shape=[rows, WIDTH], size=rows * len(RAW))
    said = refused(service, 413, head + RAW * rows, inference_header_content_length=str(len(head)))
    assert "1024 rows" in said


def test_a_request_over_the_limit_is_refused_whether_or_not_it_says_its_length(service: Running) -> None:
    refused(service, 413, b"0" * (LIMIT + 1))
    pieces = (b"0" * 4096 for _ in range(40))
    found = httpx.post(service.url + INFER, content=pieces)
    assert found.status_code == 413
    for length in (10 * LIMIT, 10**30):
        status, said = service.exchange(
            f"POST {INFER} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode()
        )
        assert status in (400, 413)
        assert "error" in said


@pytest.mark.parametrize(
    "path",
    [
        "/v2/models/other/infer",
        "/v2/models/../../etc/passwd",
        "/v2/models/..%2f..%2fetc%2fpasswd/infer",
        f"/v2/models/{NAME}%00/infer",
        f"/v2/models/{NAME}/versions/2/infer",
        f"/v2/models/{NAME}/versions/../infer",
        f"/v2/models/{NAME}/infer/",
        f"/v2//models/{NAME}/infer",
        f"/V2/models/{NAME}/infer",
        "/v2/models/%ff%fe/infer",
        "/v2/models/" + "a" * 10_000 + "/infer",
        "/",
        "/manifest.json",
        "/device.onnx",
        "//evil.example/v2",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_unknown_models_and_path_tricks_are_refused(service: Running, path: str, method: str) -> None:
    request = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}"
    status, said = service.exchange(request.encode())
    assert status in (400, 404, 405)
    assert list(said) == ["error"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_other_methods_are_refused(service: Running, method: str) -> None:
    found = httpx.request(method, service.url + INFER)
    assert found.status_code == 405
    assert found.headers["allow"] == "POST"
    assert "error" in found.json()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64,
        b"HELO there\r\n\r\n",
        b"GET /v2 HTTP/9.9\r\n\r\n",
        b"GET /v2\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST " + INFER.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST " + INFER.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST " + INFER.encode() + b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"GET /v2 HTTP/1.1\r\nHost: x\r\nBad Header\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused(service: Running, sent: bytes) -> None:
    status, said = service.exchange(sent)
    assert status == 400
    assert list(said) == ["error"]


def test_endless_headers_are_refused(service: Running) -> None:
    with service.connect() as raw:
        raw.sendall(b"GET /v2 HTTP/1.1\r\n")
        try:
            for number in range(2000):
                raw.sendall(b"X-%d: " % number + b"y" * 100 + b"\r\n")
        except OSError:
            return  # it was cut off while it still sent
        assert read_answer(raw)[0] == 431


def test_a_client_that_dribbles_its_headers_is_sent_away(service: Running) -> None:
    started = time.monotonic()
    with service.connect() as raw:
        raw.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n")
        raw.settimeout(0.2)
        found = b""
        while time.monotonic() - started < 10 and not found:
            try:
                raw.sendall(b"X-A: b\r\n")
                found = raw.recv(1000)
            except TimeoutError:
                continue
        assert b" 408 " in found
    assert time.monotonic() - started < 5


def test_a_client_that_dribbles_its_body_is_sent_away(service: Running) -> None:
    started = time.monotonic()
    head = f"POST {INFER} HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n".encode()
    status, said = service.exchange(head + b'{"inputs"')
    assert status == 408
    assert "did not arrive" in said["error"]
    assert time.monotonic() - started < 5


def test_a_client_that_never_reads_its_answer_is_cut_off(service: Running) -> None:
    rows = 400
    head = json.dumps(body(shape=[rows, WIDTH], data=None, parameters={"binary_data_size": rows * 4 * WIDTH})).encode()
    content = head + RAW * rows
    request = (
        f"POST {INFER} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(content)}\r\n"
        f"Inference-Header-Content-Length: {len(head)}\r\n\r\n"
    ).encode() + content
    with service.connect(0.2) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sent, end = 0, time.monotonic() + 20
        with pytest.raises(ConnectionError):  # answers pile up until nobody waits any more
            while time.monotonic() < end:
                with suppress(TimeoutError):
                    sent += raw.send(request[sent % len(request) :])


def test_values_on_which_the_network_overflows_get_no_made_up_answer(service: Running) -> None:
    assert "out of its range" in refused(service, 422, body(data=[3e38] * WIDTH))
