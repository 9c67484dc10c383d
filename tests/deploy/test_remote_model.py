"""The round trip: right answers, nothing raw on the wire, patience with a busy server, none with a liar."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.service_process import running
from tests.deploy.conftest import Bundles, Made

from sfumato.core.errors import DataError, UsageError
from sfumato.deploy.program_checks import session
from sfumato.device import Device, RemoteModel
from sfumato.device.remote_model import NoAnswer
from sfumato.device.watching import FolderWatch, token_of

Reply = tuple[int, dict[str, str], bytes]


class Recorder(ThreadingHTTPServer):
    """A server that keeps what it is sent and replies as a test says."""

    daemon_threads = True

    def __init__(self, reply: Callable[[int, bytes, dict[str, str]], Reply]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply, self.bodies, self.headers = reply, [], []  # type: ignore[var-annotated]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Recorder)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server.bodies.append(body)
        server.headers.append(dict(self.headers))
        status, headers, answer = server.reply(len(server.bodies), body, dict(self.headers))
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(answer))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def replying(reply: Callable[[int, bytes, dict[str, str]], Reply]) -> Iterator[Recorder]:
    server = Recorder(reply)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def cloud(made: Made) -> Callable[[int, bytes, dict[str, str]], Reply]:
    """The cloud half, for JSON tensors."""
    program = session(made.folder / "cloud.onnx")

    def reply(_: int, body: bytes, headers: dict[str, str]) -> Reply:
        asked = json.loads(gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body)
        tensor = asked["inputs"][0]
        given = np.array(tensor["data"], dtype=np.float32).reshape(tensor["shape"])
        out = program.run(None, {tensor["name"]: given})[0]
        said = {"name": asked["outputs"][0]["name"], "shape": list(out.shape), "datatype": "FP32"}
        answer = {"id": asked["id"], "outputs": [{**said, "data": out.reshape(-1).tolist()}]}
        return 200, {}, json.dumps(answer).encode()

    return reply


@pytest.mark.parametrize("key", [("ran", "image"), ("phase", "image")], ids="-".join)
def test_a_real_server_gives_the_answers_of_the_network(bundles: Bundles, key: tuple[str, ...]) -> None:
    made = bundles[key]
    some = made.data.x[:30]
    with running(bundle=made.folder) as service:
        for binary in (True, False):
            for compress in (True, False):
                with RemoteModel(service.url, device=made.folder, binary=binary, compress=compress) as remote:
                    found = remote.scores(some)
                    if key[0] == "ran":
                        wanted = made.mechanism.predict(made.mechanism.transform(some))  # type: ignore[attr-defined]
                        assert np.abs(found - wanted).max() < 1e-4
                        assert remote.scores(some[0]).shape == (3,)
                    right = (found.argmax(1) == made.data.utility["what"][:30]).mean()
                    own = made.mechanism.answer(made.data, seed=2) if key[0] == "phase" else wanted  # type: ignore[attr-defined]
                    assert right >= (own[:30].argmax(1) == made.data.utility["what"][:30]).mean() - 0.15


def test_the_wire_sees_no_record_no_key_and_no_result(bundles: Bundles) -> None:
    made = bundles["phase", "image"]
    device, keys = Device(made.folder), []
    encrypt = device.encrypt
    device.encrypt = lambda *given, **more: keys.append(encrypt(*given, **more)) or keys[-1]  # type: ignore[method-assign,func-returns-value]
    with replying(cloud(made)) as server, RemoteModel(server.url, device=device, binary=False) as remote:
        scores = remote.scores(made.data.x[:20])
    sent = np.array(json.loads(server.bodies[0])["inputs"][0]["data"], dtype=np.float32)
    assert set(json.loads(server.bodies[0])) == {"id", "inputs", "outputs"}
    ours = (made.data.x[:20], keys[0][1].rotations, scores)
    assert not any(np.isin(np.round(sent, 6), np.round(secret[secret != 0.0], 6)).mean() > 0.02 for secret in ours)
    encoder = made.mechanism.public_encoder()  # type: ignore[attr-defined]
    import torch

    with torch.no_grad():
        features = encoder(torch.as_tensor(made.data.x[:20])).numpy()
    assert np.abs(sent.reshape(20, 2, -1)[:, 0] - features.reshape(20, -1)).max() > 0.01  # no row is the feature


def busy(times: int, then: Callable[[int, bytes, dict[str, str]], Reply], wait: str = "0") -> Any:
    def reply(number: int, body: bytes, headers: dict[str, str]) -> Reply:
        if number <= times:
            return 503, {"Retry-After": wait}, b'{"error": "the queue is full"}'
        return then(number, body, headers)

    return reply


def test_a_busy_server_is_asked_again(bundles: Bundles) -> None:
    made = bundles["ran", "image"]
    with replying(busy(3, cloud(made))) as server:
        remote = RemoteModel(server.url, device=made.folder, binary=False)
        assert remote.scores(made.data.x[:2]).shape == (2, 3)
        assert len(server.bodies) == 4
    with (
        replying(busy(9, cloud(made))) as server,
        pytest.raises(NoAnswer, match=r"3 attempts \(503: the queue is full\)"),
    ):
        RemoteModel(server.url, device=made.folder, retries=2).scores(made.data.x[:2])


def test_a_server_that_is_not_there_is_one_sentence(bundles: Bundles) -> None:
    remote = RemoteModel("http://127.0.0.1:9", device=bundles["ran", "image"].folder, retries=0)
    with pytest.raises(NoAnswer, match="1 attempts"):
        remote.scores(bundles["ran", "image"].data.x[:2])


def test_a_refusal_is_not_repeated(bundles: Bundles) -> None:
    with replying(lambda *_: (401, {}, b'{"error": "no\\u0007 token"}')) as server:
        with pytest.raises(DataError, match="401: no token"):
            RemoteModel(server.url, device=bundles["ran", "image"].folder).scores(bundles["ran", "image"].data.x[:2])
        assert len(server.bodies) == 1


def lie(**change: Any) -> Callable[[int, bytes, dict[str, str]], Reply]:
    def reply(_: int, body: bytes, __: dict[str, str]) -> Reply:
        name = json.loads(body)["id"]
        output = {"name": "scores", "shape": [2, 3], "datatype": "FP32", "data": [0.0] * 6, **change}
        return 200, {}, json.dumps({"id": change.get("id", name), "outputs": [output]}).encode()

    return reply


LIES = {
    "another shape": lie(shape=[2, 4], data=[0.0] * 8),
    "too few numbers": lie(data=[0.0]),
    "text": lie(data=["a"] * 6),
    "another type": lie(datatype="FP64"),
    "another output": lie(name="payload"),
    "another question": lie(id="0" * 32),
    "endless numbers": lie(data=[float("nan")] * 6),
    "cut off": lie(parameters={"binary_data_size": 99}),
    "a negative size": lie(parameters={"binary_data_size": -1}),
    "a flood": lambda *_: (200, {}, b" " * (2 << 20)),
    "a bomb": lambda *_: (200, {"Content-Encoding": "gzip"}, gzip.compress(b" " * (64 << 20))),
    "no JSON": lambda *_: (200, {}, b"<html>"),
    "a list": lambda *_: (200, {}, b"[]"),
    "an odd length": lambda *_: (200, {"Inference-Header-Content-Length": "-5"}, b"{}"),
}


@pytest.mark.parametrize("what", sorted(LIES))
def test_an_answer_that_is_none_is_one_sentence(bundles: Bundles, what: str) -> None:
    made = bundles["ran", "image"]
    with replying(LIES[what]) as server, pytest.raises(DataError, match=r"^[^\n]*\.$"):
        RemoteModel(server.url, device=made.folder, retries=0, binary=False).scores(made.data.x[:2])


def test_a_token_does_not_go_over_an_open_wire(bundles: Bundles) -> None:
    folder = bundles["ran", "image"].folder
    with pytest.raises(UsageError, match="use https"):
        RemoteModel("http://example.org", "secret", device=folder)
    with pytest.raises(UsageError, match="blanks or odd"):
        RemoteModel("https://example.org", "two words", device=folder)
    RemoteModel("http://127.0.0.1:1", "secret", device=folder)
    RemoteModel("http://example.org", "secret", device=folder, plain=True)


@pytest.mark.parametrize("url", ["example.org", "ftp://example.org", "http://", "https://user:pass@example.org"])
def test_an_odd_address_is_refused(bundles: Bundles, url: str) -> None:
    with pytest.raises(UsageError, match="no address of a server"):
        RemoteModel(url, device=bundles["ran", "image"].folder)


def test_files_are_protected_as_they_arrive(bundles: Bundles, tmp_path: Path) -> None:
    made = bundles["ran", "image"]
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    from PIL import Image

    Image.fromarray(np.full((16, 16), 40, dtype=np.uint8)).save(folder / "one.png")
    (folder / "two.png").write_bytes(b"no picture")
    (folder / ".hidden.png").write_bytes(b"half")
    (folder / "note.txt").write_text("not a record")
    with replying(cloud(made)) as server:
        device = Device(made.folder)
        watch = FolderWatch(folder, out, device, RemoteModel(server.url, device=device, binary=False))
        assert watch.once() == 0  # seen for the first time: it may still be growing
        assert watch.once() == 2
        assert watch.once() == 0
    first = json.loads((out / "one.png.json").read_text())
    assert first["answers"][0]["what"] in ("a", "b", "c")
    assert "cannot be read" in json.loads((out / "two.png.json").read_text())["error"]
    assert sorted(file.name for file in out.iterdir()) == ["one.png.json", "two.png.json"]
    with replying(busy(9, cloud(made))) as server:
        remote = RemoteModel(server.url, device=device, retries=0)
        late = FolderWatch(folder, tmp_path / "late", device, remote)
        late.once()
        assert late.once() == 1  # the broken one; the other is tried again
        assert not (tmp_path / "late" / "one.png.json").exists()
    local = FolderWatch(folder, tmp_path / "local", device, None)
    local.once()
    local.once()
    assert np.load(tmp_path / "local" / "one.png.npy").shape == (32, 1, 1)


def test_a_watch_that_cannot_work_says_so(bundles: Bundles, tmp_path: Path) -> None:
    device = Device(bundles["ran", "image"].folder)
    with pytest.raises(UsageError, match="no folder"):
        FolderWatch(tmp_path / "missing", tmp_path / "out", device, None)
    with pytest.raises(UsageError, match="cannot lie in"):
        FolderWatch(tmp_path, tmp_path, device, None)
    with pytest.raises(UsageError, match="give --to"):
        FolderWatch(tmp_path, tmp_path / "out", Device(bundles["phase", "image"].folder), None)
    (tmp_path / "token").write_text("\n")
    with pytest.raises(DataError, match="first line is the token"):
        token_of(tmp_path / "token")
