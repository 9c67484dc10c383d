"""What surrounds every request: a line in the log, a place in the metrics, and an answer in JSON whatever happens."""

from __future__ import annotations

import secrets
import time
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.deploy.serve.refusals import Refused
from sfumato.deploy.serve.serve_log import LOGGER, say
from sfumato.deploy.serve.serve_metrics import ServeMetrics

_GONE = 499
_SENTENCES = {404: "there is nothing at this address.", 405: "this address does not take this method."}
_ROUTINE = ("/v2/health/live", "/v2/health/ready", "/metrics")
"""Asked every few seconds by probes: not worth a line."""
_SAFE = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]


class Gatekeeper:
    """ASGI application around the service's own."""

    def __init__(self, app: ASGIApp, metrics: ServeMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, number = time.perf_counter(), secrets.token_hex(8)
        said: dict[str, Any] = {"request": number, "rows": 0, "route": "other", "refused": None}
        scope["state"] = said
        status, sent = 0, 0

        async def count(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", number.encode()), *_SAFE]
            else:
                sent += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, count)
        except ClientDisconnect:
            status = status or _GONE
        except Exception:
            LOGGER.exception("failed", extra={"figures": {"request": number}})
        seconds = time.perf_counter() - started
        self._metrics.answered(said["route"], status, seconds)
        if said["refused"]:
            self._metrics.refused(said["refused"])
        if status == 200 and said["route"] in _ROUTINE:
            return
        figures = {name: said[name] for name in ("request", "route", "rows", "refused") if said[name] is not None}
        say("request", method=_method(scope), status=status, ms=round(seconds * 1000, 2), bytes=sent, **figures)


async def refusal(request: Request, error: Exception) -> Response:
    """``{"error": …}`` for whatever is refused."""
    if isinstance(error, Refused):
        request.state.refused = error.reason
        return JSONResponse({"error": error.sentence}, error.status, error.headers)
    if isinstance(error, HTTPException):
        request.state.refused = "unknown"
        sentence = _SENTENCES.get(error.status_code, "the request is not served.")
        return JSONResponse({"error": sentence}, error.status_code, error.headers)
    request.state.refused = "failed"
    sentence = f"the service failed; its log says where, under {request.state.request}."
    return JSONResponse({"error": sentence}, 500, {"connection": "close"})


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in ("GET", "HEAD", "POST") else "other"
