"""Tokens, TLS, several workers, overload, and how the service begins and ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx
import numpy as np
import pytest
from benchmarks.made_bundle import CLASSES, NAME, WIDTH, answer, serialised, write_bundle
from benchmarks.service_process import SRC, read_answer, running, started
from onnx import TensorProto, helper, numpy_helper

INFER = f"/v2/models/{NAME}/infer"
TOKENS = ("first-token-0123456789", "second-token-9876543210")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bundle(tmp_path_factory.mktemp("bundle"))


def test_an_answer_beyond_the_limits_is_refused_before_it_is_computed(bundle: Path) -> None:
    x = np.ones((129, WIDTH), np.float32)
    tensor = {
        "name": "payload",
        "datatype": "FP32",
        "shape": [129, WIDTH],
        "parameters": {"binary_data_size": x.nbytes},
    }
    with running(bundle=bundle, max_json=8192) as service:
        for binary, status in ((False, 413), (True, 200)):
            head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": binary}}).encode()
            headers = {"inference-header-content-length": str(len(head))}
            said = httpx.post(service.url + INFER, content=head + x.tobytes(), headers=headers)
            assert said.status_code == status
            assert binary or "ask for fewer rows" in said.json()["error"]


@pytest.fixture(scope="module")
def slow_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network that needs some tens of milliseconds a row."""
    draw = np.random.default_rng(0)
    steps = 40
    wide = (draw.normal(size=(1024, 1024)) / 32).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["payload", "into"], ["x0"])]
    nodes += [helper.make_node("MatMul", [f"x{number}", "wide"], [f"x{number + 1}"]) for number in range(steps)]
    nodes += [helper.make_node("MatMul", [f"x{steps}", "out"], ["scores"])]
    weights = {
        "into": (draw.normal(size=(WIDTH, 1024))).astype(np.float32),
        "wide": wide,
        "out": (draw.normal(size=(1024, CLASSES)) / 32).astype(np.float32),
    }
    cloud = serialised(
        nodes,
        [("payload", TensorProto.FLOAT, ["N", WIDTH])],
        [("scores", ["N", CLASSES])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return write_bundle(tmp_path_factory.mktemp("slow"), cloud)


def body(x: np.ndarray) -> dict[str, object]:
    tensor = {"name": "payload", "datatype": "FP32", "shape": list(x.shape), "data": x.ravel().tolist()}
    return {"inputs": [tensor]}


def scores(said: httpx.Response) -> np.ndarray:
    found = said.json()["outputs"][0]
    return np.reshape(found["data"], found["shape"])


def test_tokens_are_asked_for_everywhere_but_at_the_health_of_the_service(bundle: Path, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# of the two devices\n{TOKENS[0]}\n\n{TOKENS[1]}\n")
    x = np.ones((1, WIDTH), np.float32)
    with running(bundle=bundle, token_file=file) as service:
        for token in TOKENS:
            headers = {"authorization": f"Bearer {token}"}
            assert httpx.post(service.url + INFER, json=body(x), headers=headers).status_code == 200
            assert httpx.get(f"{service.url}/metrics", headers=headers).status_code == 200
        for wrong in (
            {},
            {"authorization": ""},
            {"authorization": "Bearer"},
            {"authorization": "Bearer wrong-token-0123456789"},
            {"authorization": f"Bearer {TOKENS[0]}x"},
            {"authorization": f"Bearer {TOKENS[0][:-1]}"},
            {"authorization": f"Basic {TOKENS[0]}"},
            {"authorization": TOKENS[0]},
            {"authorization": "Bearer # of the two devices"},
        ):
            for method, path in (("POST", INFER), ("GET", "/metrics"), ("GET", "/v2"), ("GET", f"/v2/models/{NAME}")):
                said = httpx.request(method, service.url + path, headers=wrong)
                assert said.status_code == 401, path
                assert list(said.json()) == ["error"]
                assert said.headers["www-authenticate"].startswith("Bearer")
        assert httpx.get(f"{service.url}/v2/health/ready").status_code == 200
        told = httpx.get(f"{service.url}/openapi.json").json()
        assert told["security"] == [{"token": []}]
        assert not [line for line in service.lines for token in TOKENS if token in line]


def test_tls_is_served_and_a_client_that_trusts_nobody_is_not(bundle: Path, tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key,
         "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    x = np.ones((2, WIDTH), np.float32)
    with running(bundle=bundle, tls_cert=cert, tls_key=key) as service:
        assert service.url.startswith("https://")
        trusted = ssl.create_default_context(cafile=str(cert))
        said = httpx.post(service.url + INFER, json=body(x), verify=trusted)
        np.testing.assert_allclose(scores(said), answer(x), atol=1e-4)
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{service.url}/v2", verify=ssl.create_default_context())
        with pytest.raises(httpx.HTTPError):
            httpx.get(service.url.replace("https", "http") + "/v2")


def test_several_workers_share_the_address_add_their_figures_up_and_are_started_again(bundle: Path) -> None:
    x = np.ones((1, WIDTH), np.float32)
    with running(bundle=bundle, workers=2) as service:
        end = time.monotonic() + 30
        while len(service.events("ready")) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        for _ in range(30):
            assert httpx.post(service.url + INFER, json=body(x)).status_code == 200
        page = httpx.get(f"{service.url}/metrics").text
        assert "sfumato_rows_total 30.0" in page
        workers = {one["pid"] for one in service.events("ready")}
        assert len(workers) == 2
        os.kill(min(workers), signal.SIGKILL)
        while len(service.events("ready")) < 3 and time.monotonic() < end:
            time.sleep(0.05)
        assert {one["pid"] for one in service.events("ready")} != workers
        assert httpx.post(service.url + INFER, json=body(x)).status_code == 200
        assert service.stop() == 0
        assert not service.strange_lines()


def test_tokens_are_changed_without_a_pause(bundle: Path, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(TOKENS[0] + "\n")
    with running(bundle=bundle, workers=2, token_file=file) as service:

        def status(token: str) -> int:
            ask = partial(httpx.get, f"{service.url}/v2", headers={"authorization": f"Bearer {token}"})
            try:
                return int(ask().status_code)
            except httpx.TransportError:  # the worker that was asked ended: clients ask again
                return int(ask().status_code)

        end = time.monotonic() + 30
        while len(service.events("ready")) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        assert (status(TOKENS[0]), status(TOKENS[1])) == (200, 401)
        file.write_text(TOKENS[1] + "\n")
        service.process.send_signal(signal.SIGHUP)
        while len(service.events("ready")) < 4 and time.monotonic() < end:
            assert {status(TOKENS[0]), status(TOKENS[1])} <= {200, 401}
            time.sleep(0.05)
        assert len(service.events("ready")) == 4
        assert (status(TOKENS[0]), status(TOKENS[1])) == (401, 200)


def test_workers_end_when_the_process_is_killed_that_started_them(bundle: Path) -> None:
    with running(bundle=bundle, workers=2) as service:
        end = time.monotonic() + 30
        while len(service.events("ready")) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        workers = [one["pid"] for one in service.events("ready")]
        service.process.kill()
        service.process.wait()
        while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < end:
            time.sleep(0.05)
        assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def test_beyond_the_queue_requests_are_told_to_come_back_and_no_answer_is_wrong(slow_bundle: Path) -> None:
    x = np.random.default_rng(0).normal(size=(24, 2, WIDTH)).astype(np.float32)
    with running(bundle=slow_bundle, max_batch=2, queue_rows=4, threads=1) as service:
        right = [scores(httpx.post(service.url + INFER, json=body(one))) for one in x]

        def ask(number: int) -> httpx.Response:
            return httpx.post(service.url + INFER, json=body(x[number]), timeout=30)

        with ThreadPoolExecutor(24) as pool:
            found = list(pool.map(ask, range(len(x))))
        page = httpx.get(f"{service.url}/metrics").text
    served = [number for number, said in enumerate(found) if said.status_code == 200]
    busy = [said for said in found if said.status_code == 503]
    assert len(served) + len(busy) == len(x)
    assert served
    assert busy
    assert all(int(said.headers["retry-after"]) >= 1 for said in busy)
    assert all("error" in said.json() for said in busy)
    for number in served:
        np.testing.assert_allclose(scores(found[number]), right[number], rtol=1e-3, atol=1e-3)
    assert f'sfumato_refused_total{{reason="queue-full"}} {float(len(busy))}' in page


def test_a_request_that_waits_too_long_is_told_to_come_back(slow_bundle: Path) -> None:
    x = np.ones((40, WIDTH), np.float32)
    with running(bundle=slow_bundle, max_batch=1, timeout=0.05, threads=1) as service:
        said = httpx.post(service.url + INFER, json=body(x), timeout=30)
        assert said.status_code == 503
        assert "no answer within" in said.json()["error"]
        assert int(said.headers["retry-after"]) >= 1


def test_requests_under_way_are_answered_before_the_service_stops(slow_bundle: Path) -> None:
    x = np.ones((30, WIDTH), np.float32)
    with running(bundle=slow_bundle, max_batch=1, threads=1) as service, service.connect(30) as idle:
        idle.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n")
        read_answer(idle)
        said: list[httpx.Response] = []
        asking = threading.Thread(target=lambda: said.append(httpx.post(service.url + INFER, json=body(x), timeout=60)))
        asking.start()
        end = time.monotonic() + 10
        while "sfumato_held_bytes 0.0" in httpx.get(f"{service.url}/metrics").text and time.monotonic() < end:
            time.sleep(0.005)
        assert service.stop() == 0
        asking.join(30)
        assert said[0].status_code == 200
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{service.url}/v2/health/live")


def test_connections_beyond_the_limit_are_told_to_come_back(bundle: Path) -> None:
    with running(bundle=bundle, max_connections=3) as service:
        kept = [service.connect() for _ in range(3)]
        for raw in kept:
            raw.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
            assert read_answer(raw)[0] == 200
        with service.connect() as raw:
            status, said = read_answer(raw)
        assert status == 503
        assert "connections" in said["error"]
        for raw in kept:
            raw.close()


def test_what_requests_hold_in_memory_is_bounded(bundle: Path) -> None:
    with running(bundle=bundle, max_held=100_000, body_seconds=5.0) as service, service.connect() as first:
        first.sendall(f"POST {INFER} HTTP/1.1\r\nHost: x\r\nContent-Length: 90000\r\n\r\n".encode() + b"[")
        end = time.monotonic() + 10
        while "sfumato_held_bytes 0.0" in httpx.get(f"{service.url}/metrics").text and time.monotonic() < end:
            time.sleep(0.01)
        said = httpx.post(service.url + INFER, content=b"0" * 20_000)
        assert said.status_code == 503
        assert int(said.headers["retry-after"]) >= 1


def test_killed_under_load_and_started_again_all_clients_get_right_answers(bundle: Path) -> None:
    """Clients try again on whatever goes wrong below HTTP, and on 503."""
    draw = np.random.default_rng(0)
    stop = threading.Event()
    counted = {"right": 0, "again": 0}
    lock = threading.Lock()
    with running(bundle=bundle) as first:
        port = first.address[1]

        def ask(seed: int) -> None:
            own = np.random.default_rng(seed)
            with httpx.Client(timeout=5) as client:
                while not stop.is_set():
                    x = own.normal(size=(int(own.integers(1, 9)), WIDTH)).astype(np.float32)
                    for _ in range(400):
                        try:
                            said = client.post(f"{first.url}{INFER}", json=body(x))
                        except httpx.HTTPError:
                            said = None
                        if said is not None and said.status_code != 503:
                            break
                        with lock:
                            counted["again"] += 1
                        time.sleep(0.05)
                    assert said is not None
                    assert said.status_code == 200, said.text
                    np.testing.assert_allclose(scores(said), answer(x), atol=1e-3)
                    with lock:
                        counted["right"] += 1

        with ThreadPoolExecutor(8) as pool:
            clients = [pool.submit(ask, int(seed)) for seed in draw.integers(0, 2**31, 8)]
            time.sleep(1.0)
            for last in (False, False, True):
                first.process.kill()
                first.process.wait()
                before = counted["right"]
                with running(bundle=bundle, port=port) as again:
                    end = time.monotonic() + 30
                    while counted["right"] < before + 50 and time.monotonic() < end:
                        time.sleep(0.05)
                    assert counted["right"] >= before + 50
                    first.process = again.process
                    if last:
                        stop.set()
                        for client in clients:
                            client.result(30)
        assert counted["again"] > 0


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sfumato", "serve", *words], env={**os.environ, "PYTHONPATH": str(SRC)}, text=True,
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip


def test_the_command_serves_until_it_is_interrupted(bundle: Path) -> None:
    words = [sys.executable, "-m", "sfumato", "serve", str(bundle), "--port", "0"]
    for how in (signal.SIGINT, signal.SIGTERM):
        with started(words) as service:
            x = np.ones((1, WIDTH), np.float32)
            assert httpx.post(service.url + INFER, json=body(x)).status_code == 200
            assert service.stop(how) == 0
            assert not service.strange_lines()
            assert service.events("stopped")


def test_what_cannot_be_served_is_one_sentence(bundle: Path, tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.write_text("abc\n")
    changed = write_bundle(tmp_path / "changed")
    (changed / "cloud.onnx").write_bytes(b"x" * (changed / "cloud.onnx").stat().st_size)
    broken = write_bundle(tmp_path / "broken", b"no network")
    fixed = serialised(
        [helper.make_node("Relu", ["payload"], ["scores"])],
        [("payload", TensorProto.FLOAT, [1, WIDTH])],
        [("scores", [1, WIDTH])],
    )
    mixing = serialised(
        [
            helper.make_node("ReduceMean", ["payload"], ["mean"], keepdims=1),
            helper.make_node("Sub", ["payload", "mean"], ["scores"]),
        ],
        [("payload", TensorProto.FLOAT, ["N", CLASSES])],
        [("scores", ["N", CLASSES])],
    )
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = str(other.getsockname()[1])
        for code, sentence, words in (
            (3, "is no bundle", [str(tmp_path / "none")]),
            (3, "not the file that was exported", [str(changed)]),
            (3, "cannot load the network", [str(broken)]),
            (3, "no free first axis", [str(write_bundle(tmp_path / "fixed", fixed, classes=WIDTH))]),
            (3, "rows change each other", [str(write_bundle(tmp_path / "mixing", mixing, shape=(CLASSES,)))]),
            (3, "16 characters or more", [str(bundle), "--token-file", str(short)]),
            (3, "does not exist", [str(bundle), "--token-file", str(tmp_path / "none")]),
            (2, "needs both", [str(bundle), "--tls-cert", str(short)]),
            (3, "no certificate and its key", [str(bundle), "--tls-cert", str(short), "--tls-key", str(short)]),
            (2, "choose another", [str(bundle), "--port", taken]),
            (2, "choose another", [str(bundle), "--host", "192.0.2.1"]),
        ):
            said = command(*words)
            assert said.returncode == code, said.stderr
            assert sentence in said.stderr
            assert "Traceback" not in said.stderr


def test_routes_of_somebody_else_are_served_beside(bundle: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from starlette.responses import PlainTextResponse\nfrom starlette.routing import Route\n"
        "from sfumato.deploy.serve import ServeSettings, run\nfrom sfumato.deploy.serve.server_app import create\n"
        "async def page(request): return PlainTextResponse('a page')\n"
        "def make(settings): return create(settings, [Route('/play', page)])\n"
        "run(ServeSettings(Path(sys.argv[1]), port=0), make)"
    )
    with started([sys.executable, "-c", code, str(bundle)]) as service:
        assert httpx.get(f"{service.url}/play").text == "a page"
        assert httpx.get(f"{service.url}/v2/health/ready").status_code == 200


def test_the_service_runs_without_torch(bundle: Path) -> None:
    code = (
        "import sys; sys.modules.update(torch=None, sklearn=None, pyarrow=None, pandas=None)\n"
        "import sfumato.cli.main\nfrom pathlib import Path\n"
        "from sfumato.deploy.serve.server_app import create\nfrom sfumato.deploy.serve import ServeSettings\n"
        "create(ServeSettings(Path(sys.argv[1])))\n"
    )
    subprocess.run([sys.executable, "-c", code, str(bundle)], env={**os.environ, "PYTHONPATH": str(SRC)}, check=True)
