"""What goes over the wire between a device and the service: a recorder stands between them and keeps every byte."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from benchmarks.service_process import running

from sfumato.core.dataset import Splits
from sfumato.deploy.exporting import export
from sfumato.device import Device, EdgeKey, RemoteModel
from sfumato.mechanisms.device_secret import make_secret

RECORDS = 200


class Recorder:
    """Hands on what it hears, and keeps it: ``sent`` by the device, ``answered`` by the service."""

    def __init__(self, to: tuple[str, int]) -> None:
        self._to = to
        self.sent, self.answered = bytearray(), bytearray()
        self._door = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._door.getsockname()[1]}"
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        self._door.close()

    def _listen(self) -> None:
        while True:
            try:
                here, _ = self._door.accept()
            except OSError:
                return
            there = socket.create_connection(self._to)
            for one, other, kept in ((here, there, self.sent), (there, here, self.answered)):
                threading.Thread(target=self._hand_on, args=(one, other, kept), daemon=True).start()

    @staticmethod
    def _hand_on(one: socket.socket, other: socket.socket, kept: bytearray) -> None:
        with one:
            while piece := one.recv(65536):
                kept += piece
                other.sendall(piece)
            other.close()


@contextmanager
def recorded(bundle: Path, **settings: Any) -> Iterator[Recorder]:
    with running(bundle=bundle, **settings) as service:
        recorder = Recorder(service.address)
        yield recorder
        recorder.close()


def pieces(x: np.ndarray, size: int = 32) -> Iterator[bytes]:
    """Every run of ``size`` bytes of each record that could not be anything else, in the forms it is likely to take."""
    for record in x:
        for form in (record.astype("<f4"), record.astype("<f8"), np.round(record * 255).astype(np.uint8)):
            raw = form.tobytes()
            for at in range(0, len(raw) - size, size):
                piece = raw[at : at + size]
                if len(set(piece)) > 8:  # background is in everything
                    yield piece


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("secret") / "device.key"
    make_secret(path)
    return path


@pytest.fixture(scope="module")
def phase(fitted: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    folder = tmp_path_factory.mktemp("wire") / "phase"
    export(fitted["phase"], folder)
    return fitted["phase"], folder


def test_phase_over_the_wire_is_as_right_as_here_and_the_wire_says_nothing(
    phase: tuple[Any, Path], parity: Splits, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism, bundle = phase
    victims = parity.victim.take(slice(0, RECORDS))
    y = victims.label("odd")
    messages: list[np.ndarray] = []
    keys: list[EdgeKey] = []
    device = Device(bundle, secret=secret)
    encrypt = device.encrypt

    def watched(*given: Any, **more: Any) -> tuple[Any, EdgeKey]:
        message, key = encrypt(*given, **more)
        messages.append(message)
        keys.append(key)
        return message, key

    monkeypatch.setattr(device, "encrypt", watched)
    with recorded(bundle) as recorder, RemoteModel(recorder.url, device=device) as remote:
        scores = remote.scores(victims.x)
        found = remote.device.read(scores)
        sent, answered = bytes(recorder.sent), bytes(recorder.answered)

    here = mechanism.device(secret=secret)
    message, key = here.encrypt(victims.x)
    local = (here.decrypt(mechanism.cloud()(message), key).argmax(1) == y).mean()
    right = (scores.argmax(1) == y).mean()
    assert local > 0.7
    assert abs(right - local) <= 0.03
    assert [one["odd"] for one in found] == [mechanism.schema_.utility["odd"][k] for k in scores.argmax(1)]

    assert messages[0].tobytes() in sent, "the recorder hears what is sent"
    everything = sent + answered
    for rotation in keys[0].rotations:
        assert rotation.tobytes() not in everything
        assert rotation.T.tobytes() not in everything
    assert not any(piece in everything for piece in pieces(victims.x))
    for row in scores:
        assert row.astype("<f4").tobytes() not in everything
    said = answered.partition(b"\r\n\r\n")[2]
    told = json.loads(said[: said.index(b"]}") + 2])
    assert [one["name"] for one in told["outputs"]] == ["answer"]
    assert told["outputs"][0]["shape"] == [RECORDS, mechanism.d, *messages_answer(bundle)]
    assert b"odd" not in everything
    assert b"scores" not in everything


def messages_answer(bundle: Path) -> list[int]:
    manifest = json.loads((bundle / "manifest.json").read_text())
    return list(manifest["programs"]["cloud"]["outputs"][0]["shape"][2:])


def test_the_class_cannot_be_read_from_an_answer_without_its_key(
    phase: tuple[Any, Path], parity: Splits, secret: Path
) -> None:
    """Whoever reads an answer as if it were not encrypted does no better than with any other key."""
    _, bundle = phase
    victims = parity.victim.take(slice(0, RECORDS))
    device = Device(bundle, secret=secret)
    with running(bundle=bundle) as service, RemoteModel(service.url, device=device) as remote:
        message, key = device.encrypt(victims.x)
        answer = remote.infer(message)
    _, other = device.encrypt(victims.x)
    y = victims.label("odd")
    mine = (device.decrypt(answer, key).argmax(1) == y).mean()
    guessed = (device.decrypt(answer, other).argmax(1) == y).mean()
    assert mine > 0.7
    assert guessed < mine - 0.1


def test_features_over_the_wire_get_torchs_answers_and_hold_no_piece_of_a_record(
    fitted: Any, parity: Splits, tmp_path: Path
) -> None:
    mechanism = fitted["ran"]
    export(mechanism, tmp_path / "ran")
    x = parity.victim.x[:RECORDS]
    wanted = mechanism.predict(mechanism.transform(x))
    for binary, compress in ((True, False), (False, False), (True, True)):
        with recorded(tmp_path / "ran") as recorder:
            with RemoteModel(recorder.url, device=tmp_path / "ran", binary=binary, compress=compress) as remote:
                assert np.abs(remote.scores(x) - wanted).max() <= 1e-4
            assert not any(piece in bytes(recorder.sent) for piece in pieces(x))
            assert recorder.sent
    triton = pytest.importorskip("tritonclient.http")
    payload = mechanism.transform(x)
    given = triton.InferInput("payload", payload.shape, "FP32")
    with running(bundle=tmp_path / "ran") as service:
        for binary in (True, False):
            given.set_data_from_numpy(payload, binary_data=binary)
            said = triton.InferenceServerClient(service.netloc).infer("ran", [given]).as_numpy("scores")
            assert np.abs(said - wanted).max() <= 1e-4


def test_a_device_is_told_to_come_back_and_does(fitted: Any, parity: Splits, tmp_path: Path) -> None:
    """Started after the device has asked for the first time: the device asks again."""
    export(fitted["ran"], tmp_path / "ran")
    x = parity.victim.x[:4]
    with running(bundle=tmp_path / "ran") as first:
        port = first.address[1]
    with RemoteModel(f"http://127.0.0.1:{port}", device=tmp_path / "ran", retries=8) as remote:
        found: list[np.ndarray] = []
        asking = threading.Thread(target=lambda: found.append(remote.scores(x)))
        asking.start()
        with running(bundle=tmp_path / "ran", port=port) as again:
            asking.join(60)
            assert httpx.get(f"{again.url}/v2/health/ready").status_code == 200
    mechanism = fitted["ran"]
    assert np.abs(found[0] - mechanism.predict(mechanism.transform(x))).max() <= 1e-4
