"""A service in a process of its own, as an operator starts it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

SRC = Path(__file__).parents[1] / "src"
_CODE = "import sys, json; from pathlib import Path; from sfumato.deploy.serve import ServeSettings, run\n"
_CODE += "asked = json.loads(sys.argv[1])\n"
_CODE += "paths = ('bundle', 'token_file', 'tls_cert', 'tls_key')\n"
_CODE += "run(ServeSettings(**{k: Path(v) if k in paths else v for k, v in asked.items()}))"


class Running:
    """The process, its address and its log."""

    def __init__(self, command: list[str]) -> None:
        path = os.pathsep.join(filter(None, [str(SRC), os.environ.get("PYTHONPATH", "")]))
        environment = {**os.environ, "PYTHONPATH": path}
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = self._event("listening")["url"]
        self._event("ready")

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        assert parts.hostname and parts.port
        return parts.hostname, parts.port

    @property
    def netloc(self) -> str:
        return urlsplit(self.url).netloc

    def strange_lines(self) -> list[str]:
        """Lines of stderr that are no JSON."""
        return [line for line in self.lines if not line.startswith("{")]

    def events(self, name: str) -> list[dict[str, Any]]:
        """Lines of the log."""
        found = [json.loads(line) for line in self.lines if line.startswith("{")]
        return [one for one in found if one["event"] == name]

    def connect(self, seconds: float = 10.0) -> socket.socket:
        return socket.create_connection(self.address, seconds)

    def exchange(self, sent: bytes, seconds: float = 10.0) -> tuple[int, dict[str, Any]]:
        """Status and JSON of the answer to raw bytes."""
        with self.connect(seconds) as raw:
            raw.sendall(sent)
            return read_answer(raw)

    def resident(self) -> int:
        """Bytes of memory that the process has now."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))

    def stop(self, how: int = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        code = self.process.wait(20)
        self._reader.join(5)
        return code

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)

    def _event(self, name: str) -> dict[str, Any]:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if self.process.poll() is None or self.lines:
                found = [line for line in list(self.lines) if f'"event": "{name}"' in line]
                if found:
                    return json.loads(found[0])
            assert self.process.poll() is None, f"the service did not start: {''.join(self.lines)}"
            time.sleep(0.02)
        raise AssertionError(f"no {name} after a minute: {''.join(self.lines)}")


@contextmanager
def running(**asked: Any) -> Iterator[Running]:
    """A service with these settings, on any free port."""
    settings = {"port": 0, **{name: str(v) if isinstance(v, Path) else v for name, v in asked.items()}}
    with started([sys.executable, "-c", _CODE, json.dumps(settings)]) as service:
        yield service


@contextmanager
def started(command: list[str]) -> Iterator[Running]:
    """A service that a command starts."""
    service = Running(command)
    try:
        yield service
    finally:
        if service.process.poll() is None:
            service.process.kill()
            service.process.wait()


def read_answer(raw: socket.socket) -> tuple[int, dict[str, Any]]:
    """One answer with its length or up to the end of the connection."""
    found = b""
    while True:
        head, gap, body = found.partition(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line), 0
        )
        if gap and len(body) >= length:
            return int(head.split(b" ")[1]), json.loads(body[:length] or b"{}")
        piece = raw.recv(65536)
        assert piece, f"the connection ended after {found!r}"
        found += piece
