"""``sfumato view``: the page on loopback, made anew whenever a run that it shows has changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

from sfumato.core.errors import DataError, UsageError
from sfumato.report.followed_runs import check, followed, news
from sfumato.report.page import render_page, render_waiting

_HOSTS = ("127.0.0.1", "localhost")
_SENT = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "frame-ancestors 'none'",
}


class LiveView(ThreadingHTTPServer):
    """Serves the page about some folders, and what is new, to this machine alone."""

    daemon_threads = True

    def __init__(self, roots: Sequence[Path], port: int = 0) -> None:
        check(roots)
        self.roots = tuple(roots)
        self.unread: tuple[str, ...] = ()
        self._page: tuple[str, bytes] | None = None
        self._lock = Lock()
        try:
            super().__init__(("127.0.0.1", port), _Answer)
        except OSError as error:
            raise UsageError(f"port {port} cannot be used ({error.strerror}): choose another --port.") from None

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def page(self) -> bytes:
        """The page as of now; the last one, if nothing changed."""
        with self._lock:
            version = news(self.roots).version
            if self._page is None or self._page[0] != version:
                found = followed(self.roots)
                self.unread = found.unread
                text = render_page(found.groups, live=True) if found.groups else render_waiting()
                self._page = (version, text.encode())
            return self._page[1]

    def news(self) -> bytes:
        """What ``state.json`` says."""
        return json.dumps(news(self.roots, self.unread).to_json()).encode()

    def follow(self) -> None:
        """Answer until the process is interrupted."""
        try:
            self.serve_forever()
        except KeyboardInterrupt:
            pass  # which is how a view ends
        finally:
            self.server_close()


class _Answer(BaseHTTPRequestHandler):
    """Two addresses, and only for requests that name this machine: no other site's page can read them by a name of its
    own."""

    server: LiveView
    server_version, sys_version = "sfumato", ""

    def do_GET(self) -> None:
        host = self.headers.get("Host", "").removesuffix(f":{self.server.port}")
        answers: dict[str, tuple[str, Callable[[], bytes]]] = {
            "/": ("text/html; charset=utf-8", self.server.page),
            "/state.json": ("application/json", self.server.news),
        }
        if host not in _HOSTS:
            self._send(HTTPStatus.MISDIRECTED_REQUEST, "text/plain", b"This server answers to 127.0.0.1 alone.\n")
        elif self.path not in answers:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"There is nothing here; the page is at /.\n")
        else:
            kind, content = answers[self.path]
            try:
                body = content()
            except DataError as error:  # what was a run when the view began is none now
                self._send(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain; charset=utf-8", f"{error}\n".encode())
            else:
                self._send(HTTPStatus.OK, kind, body)

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        try:
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **_SENT}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            self.close_connection = True  # the reader left

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of every request."""
