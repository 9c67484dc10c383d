"""The HTTP server's connection, with an end to every patience: slow heads, unread answers, too many connections."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from sfumato.deploy.serve.settings import ServeSettings

_PHRASES = {400: "Bad Request", 408: "Request Timeout", 431: "Request Header Fields Too Large",
            503: "Service Unavailable"}  # fmt: skip


class ServeConfig(uvicorn.Config):
    """The HTTP server's configuration, with the limits of its connections."""

    def __init__(self, app: Callable[..., Any], settings: ServeSettings, **others: Any) -> None:
        super().__init__(app, http=PatientHttp, **others)
        self.settings = settings


class PatientHttp(HttpToolsProtocol):
    """One connection."""

    def __init__(self, config: uvicorn.Config, *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        assert isinstance(config, ServeConfig)
        self.settings = config.settings
        self._head_bytes = 0
        self._in_head = True
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._running: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._limit_kernel(transport)
        if len(self.connections) > self.settings.max_connections:
            self._end(503, "too many connections.", "retry-after: 1\r\n")
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        for name in list(self._timers):
            self._stop(name)
        if self._running is not None and not self._running.response_complete:  # pipelined: not the newest one
            self._running.disconnected = True
            self._running.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._in_head:
            self._head_bytes += len(data)
            if "head" not in self._timers:
                self._await_head()
        super().data_received(data)
        if self._in_head and self._head_bytes > self.settings.max_head and not self.transport.is_closing():
            self._end(431, f"the headers have more than {self.settings.max_head} bytes.")

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop("head")
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head, self._head_bytes = True, 0

    def send_400_response(self, msg: str) -> None:
        self._end(400, "this is no valid HTTP request.")

    def pause_writing(self) -> None:
        super().pause_writing()
        self._after("stall", self.settings.stall_seconds, self._reset)

    def resume_writing(self) -> None:
        self._stop("stall")
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Between requests nothing may be left to send: a client that did not read it by now never will."""
        if self.transport.get_write_buffer_size():
            self._reset()
        super().timeout_keep_alive_handler()

    def shutdown(self) -> None:
        super().shutdown()
        if self.transport.is_closing():
            self._after("end", self.settings.stall_seconds, self._reset)

    def _await_head(self) -> None:
        self._after("head", self.settings.head_seconds, self._slow_head)

    def _slow_head(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._await_head()  # reading may wait for the answer to the request before
        elif not self.transport.is_closing() and self._in_head:
            self._end(408, f"the headers did not arrive within {self.settings.head_seconds:g} s.")

    def _end(self, status: int, sentence: str, more: str = "") -> None:
        """Answer without the application, and close."""
        body = json.dumps({"error": sentence})
        head = f"HTTP/1.1 {status} {_PHRASES[status]}\r\ncontent-type: application/json\r\n{more}"
        self.transport.write(f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n{body}".encode())
        self.transport.close()
        self._after("end", self.settings.stall_seconds, self._reset)

    def _reset(self) -> None:
        """Give up what is not sent: at once, or the kernel would keep it for minutes."""
        raw = self.transport.get_extra_info("socket")
        with suppress(OSError):  # it may be gone already
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _limit_kernel(self, transport: asyncio.Transport) -> None:
        """What the kernel has taken over is not ours to time: it drops what the client does not take either."""
        raw = transport.get_extra_info("socket")
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            with suppress(OSError):
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * self.settings.stall_seconds))

    def _after(self, name: str, seconds: float, call: Callable[[], object]) -> None:
        """One timer of each name."""
        self._stop(name)
        self._timers[name] = self.loop.call_later(seconds, call)

    def _stop(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()
