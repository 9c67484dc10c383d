"""20,000 requests that nobody should send: whatever arrives, the service answers in its own words and goes on.

A third are made by schemathesis from the service's OpenAPI description, valid and invalid ones; the others by
hypothesis: good requests of the protocol with their frames, tensors, compression or HTTP bent out of shape.
"""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from benchmarks.made_bundle import NAME, WIDTH, answer, write_bundle
from benchmarks.service_process import Running, running

REQUESTS = 21_000
INFER = f"/v2/models/{NAME}/infer"
_FINE = {200, 400, 404, 405, 408, 413, 415, 422, 431, 503}
_GROWTH = 64 * 2**20
"""Most memory that the service may have gained."""


@dataclass
class Tally:
    """What came back; ``wrong`` are answers that should not be."""

    statuses: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def take(self, status: int, content: bytes, sent: object, right: np.ndarray | None = None) -> None:
        self.statuses[status] += 1
        why = _fault(status, content, right)
        if why is not None and len(self.wrong) < 20:
            self.wrong.append(f"{why}: {status} {content[:200]!r} for {str(sent)[:500]}")


def run(small: bool = False, requests: int | None = None) -> dict[str, Any]:
    """``requests`` in all, or a few hundred."""
    many = requests or (600 if small else REQUESTS)
    tally = Tally()
    with TemporaryDirectory() as folder:
        bundle = write_bundle(Path(folder) / "bundle")
        with running(bundle=bundle, max_request=2**18, body_seconds=2.0, head_seconds=2.0) as service:
            _check_alive(service)
            before = service.resident()
            parts = {
                "frames and tensors": lambda count: _bent_frames(service, tally, count),
                "HTTP": lambda count: _bent_http(service, tally, count),
                "OpenAPI description": lambda count: _described(service, tally, count),
            }
            counts = {name: _counted(part, tally, many // 3 + 1) for name, part in parts.items()}
            _check_alive(service)
            grown = service.resident() - before
            failures = [line for line in service.lines if '"event": "failed"' in line or not line.startswith("{")]
    return {
        "claim": f"{REQUESTS:,} malformed requests: each is refused in one sentence, none stops the service",
        "holds": not tally.wrong and not failures and grown < _GROWTH,
        "figures": {
            "requests": counts,
            "answers by status": {str(status): count for status, count in sorted(tally.statuses.items())},
            "answers that should not be": tally.wrong,
            "failures in the log": failures[:20],
            "memory gained, MB": round(grown / 2**20, 1),
        },
    }


def _counted(part: Callable[[int], None], tally: Tally, count: int) -> int:
    before = tally.statuses.total()
    part(count)
    return tally.statuses.total() - before


def _fault(status: int, content: bytes, right: np.ndarray | None) -> str | None:
    if status not in _FINE:
        return "a status that no request should get"
    if status == 200 and right is None:
        return None
    if right is not None and status == 200:
        found = json.loads(content)["outputs"][0]
        fits = np.allclose(np.reshape(found["data"], found["shape"]), right, rtol=1e-3, atol=1e-3)
        return None if fits else "a wrong answer"
    try:
        said = json.loads(content)
    except ValueError:
        return "a refusal that is no JSON"
    if list(said) != ["error"] or not isinstance(said["error"], str) or len(said["error"]) > 400:
        return "a refusal of another form"
    return "a refusal that tells of the code" if "Traceback" in said["error"] or ".py" in said["error"] else None


def _check_alive(service: Running) -> None:
    x = np.ones((2, WIDTH), np.float32)
    tensor = {"name": "payload", "datatype": "FP32", "shape": [2, WIDTH], "data": x.ravel().tolist()}
    body = json.dumps({"inputs": [tensor]}).encode()
    head = f"POST {INFER} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    status, said = service.exchange(head.encode() + body)
    assert status == 200
    assert np.allclose(np.reshape(said["outputs"][0]["data"], (2, -1)), answer(x), atol=1e-3)


def _rounds(count: int) -> Callable[[Any], Any]:
    quiet = settings(max_examples=count, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    return lambda test: seed(28)(quiet(test))


# Frames: JSON, its length, tensors, compression.

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(2**70),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
_PLACES: tuple[tuple[Any, ...], ...] = (
    ("inputs",), ("inputs", 0), ("inputs", 0, "name"), ("inputs", 0, "datatype"), ("inputs", 0, "shape"),
    ("inputs", 0, "shape", 0), ("inputs", 0, "shape", 1), ("inputs", 0, "data"), ("inputs", 0, "data", 0),
    ("inputs", 0, "parameters"), ("inputs", 0, "parameters", "binary_data_size"), ("outputs",), ("outputs", 0),
    ("outputs", 0, "name"), ("outputs", 0, "parameters"), ("outputs", 0, "parameters", "binary_data"), ("id",),
    ("parameters",), ("parameters", "binary_data_output"),
)  # fmt: skip


@st.composite
def _frames(draw: st.DrawFn) -> tuple[bytes, dict[str, str], np.ndarray | None]:
    """Body, headers, and the right answer where nothing was bent."""
    rows = draw(st.integers(1, 4))
    # Plain numbers: an answer for values near the ends of float32 depends on the order of sums.
    values = draw(st.lists(st.integers(-1000, 1000), min_size=rows * WIDTH, max_size=rows * WIDTH))
    x = (np.array(values, np.float32) / 8).reshape(rows, WIDTH)
    binary = draw(st.booleans())
    tensor: dict[str, Any] = {"name": "payload", "datatype": "FP32", "shape": [rows, WIDTH]}
    tensor |= {"parameters": {"binary_data_size": x.nbytes}} if binary else {"data": x.ravel().tolist()}
    asked: dict[str, Any] = {"inputs": [tensor], "outputs": [{"name": "scores"}], "id": "1"}
    bent = draw(st.integers(0, 3))
    for place in draw(st.lists(st.sampled_from(_PLACES), min_size=bent, max_size=bent)):
        _put(asked, place, draw(_JSON))
    text = json.dumps(asked).encode()
    raw = x.tobytes() if binary else b""
    headers = {"inference-header-content-length": str(len(text))} if binary else {}
    cut = draw(st.sampled_from(["no"] * 4 + ["text", "raw", "length", "more"]))
    if cut == "text":
        start, end = sorted(draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
        text = text[:start] + draw(st.binary(max_size=8)) + text[end:]
    elif cut == "raw":
        raw = raw[: draw(st.integers(0, len(raw)))] if binary else draw(st.binary(min_size=1, max_size=40))
    elif cut == "length":
        headers["inference-header-content-length"] = draw(
            st.integers(-5, 10**20).map(str) | st.text("0123456789-+.eExX ²½\xa0", max_size=12)
        ).strip()
    elif cut == "more":
        raw += draw(st.binary(min_size=1, max_size=40))
    body = text + raw
    packed = draw(st.sampled_from(["no"] * 3 + ["gzip", "deflate", "broken", "lying", "bomb"]))
    if packed != "no":
        body = _packed(packed, body, draw)
        headers["content-encoding"] = draw(st.sampled_from(["gzip", "deflate"])) if packed == "broken" else (
            "deflate" if packed == "deflate" else "gzip")  # fmt: skip
    good = bent == 0 and cut == "no" and packed in ("no", "gzip", "deflate")
    return body, headers, answer(x) if good else None


def _packed(how: str, body: bytes, draw: st.DrawFn) -> bytes:
    if how == "lying":
        return body
    if how == "bomb":
        return gzip.compress(bytes(draw(st.integers(2**18, 2**22))))
    whole = zlib.compress(body) if how == "deflate" else gzip.compress(body)
    if how != "broken":
        return whole
    at = draw(st.integers(0, len(whole) - 1))
    return whole[:at] + draw(st.binary(max_size=4)) + whole[at + draw(st.integers(0, 4)) :]


def _put(asked: dict[str, Any], place: tuple[Any, ...], value: Any) -> None:
    at: Any = asked
    for step in place[:-1]:
        if isinstance(at, dict):
            at = at.setdefault(step, {})
        elif isinstance(at, list) and isinstance(step, int) and step < len(at):
            at = at[step]
        else:
            return
    last = place[-1]
    if isinstance(at, dict) or (isinstance(at, list) and isinstance(last, int) and last < len(at)):
        at[last] = value


def _bent_frames(service: Running, tally: Tally, count: int) -> None:
    client = http.client.HTTPConnection(*service.address, timeout=20)

    @_rounds(count)
    @given(_frames())
    def send(frame: tuple[bytes, dict[str, str], np.ndarray | None]) -> None:
        body, headers, right = frame
        client.request("POST", INFER, body=body, headers=headers)
        said = client.getresponse()
        content = said.read()
        tally.take(said.status, content, (headers, body[:300]), right)
        if right is not None and said.status != 200:
            tally.wrong.append(f"a good request is refused: {said.status} {content[:200]!r} for {headers} {body!r}")

    send()
    client.close()


# HTTP: request lines, headers and lengths.

_LINES = st.sampled_from(
    [f"POST {INFER} HTTP/1.1", f"GET {INFER} HTTP/1.1", "GET /v2 HTTP/1.1", "GET /v2 HTTP/1.0", "OPTIONS * HTTP/1.1",
     "GET http://evil.example/v2 HTTP/1.1", "CONNECT x:1 HTTP/1.1", "PRI * HTTP/2.0", "GET  /v2 HTTP/1.1",
     "GET /v2/models/%2e%2e%2f%00/infer HTTP/1.1", f"POST {INFER}?a=%ff&b HTTP/1.1", "HEAD /v2/health/live HTTP/1.1"]
).map(str.encode) | st.binary(max_size=40)  # fmt: skip
_HEADS = st.sampled_from(
    ["Content-Length: 3", "Content-Length: 9999999999999999999999", "Content-Length: -1", "Content-Length: 3, 4",
     "Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked", "Expect: 100-continue", "Connection: close",
     "Connection: Upgrade", "Upgrade: websocket", "Upgrade: h2c", "Content-Encoding: gzip", "Host: ", "Host: x", ": x",
     "Inference-Header-Content-Length: 1", "Accept-Encoding: gzip;q=zero, deflate", "Authorization: Bearer \x80"]
).map(lambda line: line.encode("latin-1")) | st.binary(max_size=60)  # fmt: skip
_BODIES = st.binary(max_size=60) | st.sampled_from([b"3\r\nabc\r\n0\r\n\r\n", b"fffffffff\r\n", b"0\r\n\r\n", b"{}"])


def _bent_http(service: Running, tally: Tally, count: int) -> None:
    @_rounds(count)
    @given(_LINES, st.lists(_HEADS, max_size=5), st.sampled_from([b"\r\n", b"\n", b"\r"]), _BODIES)
    def send(line: bytes, heads: list[bytes], end: bytes, body: bytes) -> None:
        sent = end.join([line, *heads, b"", body])
        with service.connect() as raw:
            raw.sendall(sent)
            raw.shutdown(socket.SHUT_WR)
            found = _until_closed(raw)
        for status, content in _answers(found):
            tally.take(status, content, sent)
        if not found:
            tally.statuses[0] += 1  # nothing that looked like the beginning of a request

    send()


def _until_closed(raw: socket.socket) -> bytes:
    found = b""
    try:
        while piece := raw.recv(65536):
            found += piece
    except ConnectionResetError:
        pass
    return found


def _answers(found: bytes) -> list[tuple[int, bytes]]:
    """Several requests may have been recognised."""
    answers = []
    while found.startswith(b"HTTP/1.1 "):
        head, _, rest = found.partition(b"\r\n\r\n")
        status = int(head.split(b" ")[1])
        lines = head.lower().split(b"\r\n")
        length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length")), 0)
        content, found = rest[:length], rest[length:]
        if content and status != 100:
            answers.append((status, content))
    return answers


# What the description promises.


def _described(service: Running, tally: Tally, count: int) -> None:
    import requests
    import schemathesis
    from schemathesis import GenerationMode

    told = requests.get(f"{service.url}/openapi.json", timeout=20).json()
    schema = schemathesis.openapi.from_dict(told)
    operations = [found.ok() for found in schema.get_all_operations()]
    asked = [one for one in operations if one.path.endswith("/infer")]
    share = {one.path: count // 3 if one in asked else count // (4 * len(operations)) + 1 for one in operations}
    session = requests.Session()
    for one in operations:
        for mode, part in ((GenerationMode.NEGATIVE, 2), (GenerationMode.POSITIVE, 4)):
            try:
                _describe_one(one, mode, share[one.path] * 2 // part + 1, service, session, tally)
            except Exception as error:
                if type(error).__name__ not in ("Unsatisfiable", "SkipTest"):  # a read has nothing to be bent
                    raise


def _promises() -> list[Any]:
    """What every answer has to keep. That data have as many numbers as the shape says is beyond JSON Schema."""
    from schemathesis import checks
    from schemathesis.specs.openapi import checks as described

    return [
        checks.not_a_server_error, described.status_code_conformance, described.content_type_conformance,
        described.response_schema_conformance, described.negative_data_rejection,
    ]  # fmt: skip


def _describe_one(one: Any, mode: Any, count: int, service: Running, session: Any, tally: Tally) -> None:
    @_rounds(count)
    @given(case=one.as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        said = case.call(base_url=service.url, session=session, timeout=20)
        if said.content:
            tally.take(said.status_code, said.content, (case.path, case.headers, case.body))
        else:
            tally.statuses[said.status_code] += 1
        try:
            case.validate_response(said, checks=_promises())
        except BaseExceptionGroup as error:  # schemathesis' failures of one answer
            if len(tally.wrong) < 20:
                tally.wrong.append(f"not as described: {str(error)[:700]}")

    send()
