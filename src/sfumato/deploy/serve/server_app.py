"""The service as an ASGI application: routes of the Open Inference Protocol v2 around one model."""

from __future__ import annotations

import asyncio
import gzip
import os
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from sfumato import __version__
from sfumato.deploy.manifest import read_bundle
from sfumato.deploy.serve.batching import Batcher
from sfumato.deploy.serve.bearer_tokens import BearerTokens
from sfumato.deploy.serve.gatekeeper import Gatekeeper, refusal
from sfumato.deploy.serve.infer_protocol import (
    LENGTH_HEADER,
    InferCall,
    json_length,
    read_call,
    write_answer,
)
from sfumato.deploy.serve.open_api import description, page
from sfumato.deploy.serve.refusals import Refused, quoted, too_large
from sfumato.deploy.serve.request_body import JSON_WEIGHT, HeldBytes, Holding, read_body
from sfumato.deploy.serve.serve_log import say
from sfumato.deploy.serve.serve_metrics import CONTENT_TYPE, ServeMetrics
from sfumato.deploy.serve.served_model import VERSION, ServedModel
from sfumato.deploy.serve.settings import ServeSettings

_LARGE = 64 * 1024
"""Bytes from which work is done beside the event loop, so that others are not kept waiting."""
_WORTH_PACKING = 1024
JSON_GROWTH = 4
"""Raw numbers become so many times as long in JSON, or more."""
Handler = Callable[[Request], Awaitable[Response]]


class InferenceService:
    """One model, its queue, and the handlers of its routes."""

    def __init__(self, settings: ServeSettings, model: ServedModel, tokens: BearerTokens) -> None:
        self._settings = settings
        self._model = model
        self._tokens = tokens
        self.metrics = ServeMetrics()
        self._held = HeldBytes(settings.max_held, self.metrics.holds)
        self._batcher: Batcher | None = None

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        """Serve while the event loop runs; what waits is answered before the end."""
        self._batcher = Batcher(
            self._model,
            max_batch=self._settings.max_batch,
            queue_rows=self._settings.queue_rows,
            observer=self.metrics,
        )
        self._batcher.start()
        say("ready", model=self._model.name)
        yield
        await self._batcher.close()
        say("stopped")

    def routes(self) -> list[BaseRoute]:
        model = "/v2/models/{model}"
        each: list[tuple[str, str, Handler]] = [
            (f"{model}/infer", "POST", self._guarded(self.infer)),  # first: routes are tried in order
            ("/v2/health/live", "GET", self.live),
            ("/v2/health/ready", "GET", self.ready),
            ("/v2", "GET", self._guarded(self.server)),
            ("/metrics", "GET", self._guarded(self.figures)),
            ("/openapi.json", "GET", self.api),
            ("/docs", "GET", self.api_page),
        ]
        for place in (model, model + "/versions/{version}"):
            each.append((place, "GET", self._guarded(self.about_model)))
            each.append((f"{place}/ready", "GET", self._guarded(self.model_ready)))
        each.append((model + "/versions/{version}/infer", "POST", self._guarded(self.infer)))
        return [Route(path, _named(path, handler), methods=[method]) for path, method, handler in each]

    async def live(self, _request: Request) -> Response:
        return JSONResponse({"live": True})

    async def ready(self, _request: Request) -> Response:
        return JSONResponse({"ready": True})

    async def server(self, _request: Request) -> Response:
        return JSONResponse({"name": "sfumato", "version": __version__, "extensions": ["binary_tensor_data"]})

    async def about_model(self, request: Request) -> Response:
        self._asked_for(request)
        return JSONResponse(self._model.to_json())

    async def model_ready(self, request: Request) -> Response:
        self._asked_for(request)
        return JSONResponse({"name": self._model.name, "ready": True})

    async def figures(self, _request: Request) -> Response:
        return Response(self.metrics.page(), media_type=CONTENT_TYPE)

    async def api(self, _request: Request) -> Response:
        return JSONResponse(self.describe())

    async def api_page(self, _request: Request) -> Response:
        policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
        return HTMLResponse(page(self._model, tokens=bool(self._tokens)), headers={"content-security-policy": policy})

    def describe(self) -> dict[str, object]:
        """The OpenAPI description of this service."""
        return description(self._model, tokens=bool(self._tokens))

    async def infer(self, request: Request) -> Response:
        self._asked_for(request)
        assert self._batcher is not None, "requests come after the start"
        limits, specs = self._settings, self._model.inputs
        with self._held.of_request() as holding:
            body = await read_body(request, limits.max_request, limits.body_seconds, holding)
            length = request.headers.get(LENGTH_HEADER)
            json_bytes = json_length(body, length)
            holding.take(JSON_WEIGHT * min(json_bytes, limits.json_limit))
            arguments = (body, length, specs, self._model.outputs, limits.json_limit)
            call = read_call(*arguments) if json_bytes < _LARGE else await asyncio.to_thread(read_call, *arguments)
            large = self._check_answer(call, holding)
            found = await self._batcher.ask(call.inputs, call.rows, limits.timeout)
            request.state.rows = call.rows
            told = (self._model.name, VERSION, call, found, self._model.outputs)
            content, head = await asyncio.to_thread(write_answer, *told) if large else write_answer(*told)
        return await _packed(request, content, head)

    def _check_answer(self, call: InferCall, holding: Holding) -> bool:
        """Room for the answer, before anything is computed; whether it is a large one."""
        limits = self._settings
        if call.rows > limits.queue_rows:
            raise too_large(f"a request may have {limits.queue_rows} rows, this one has {call.rows}.")
        raw, text = call.answer_bytes(self._model.outputs)
        if raw > limits.max_request or text > limits.json_limit // JSON_GROWTH:
            raise too_large("the answer would be too large: ask for fewer rows at once, or for binary data.")
        holding.take(2 * raw + JSON_WEIGHT * text)
        return raw + text > _LARGE

    def _asked_for(self, request: Request) -> None:
        model, version = request.path_params["model"], request.path_params.get("version", VERSION)
        if model != self._model.name:
            raise Refused(404, "unknown", f"no model {quoted(model)} is served here; there is '{self._model.name}'.")
        if version != VERSION:
            raise Refused(404, "unknown", f"model '{model}' has no version {quoted(version)}, only '{VERSION}'.")

    def _guarded(self, handler: Handler) -> Handler:
        async def answer(request: Request) -> Response:
            self._tokens.check(request.headers.get("authorization"))
            return await handler(request)

        return answer


def _named(path: str, handler: Handler) -> Handler:
    """For log and metrics the route, never the path that a client wrote."""

    async def answer(request: Request) -> Response:
        request.state.route = path
        return await handler(request)

    return answer


def create(settings: ServeSettings, routes: Sequence[BaseRoute] = ()) -> ASGIApp:
    """The application of one worker.

    ``routes`` are added to its own. They are open to everybody, tokens or not, and come after the service's: pages, not
    data.
    """
    bundle = read_bundle(settings.bundle, programs=("cloud",))
    network = bundle.path("cloud").read_bytes()
    tokens = BearerTokens.from_file(settings.token_file)
    threads = settings.threads or max(1, (os.cpu_count() or 1) // settings.workers)
    model = ServedModel(bundle.manifest.name, network, threads=threads, max_batch=settings.max_batch)
    service = InferenceService(settings, model, tokens)
    app = Starlette(
        routes=[*service.routes(), *routes],
        exception_handlers={Refused: refusal, HTTPException: refusal, Exception: refusal},
        lifespan=service.lifespan,
    )
    app.router.redirect_slashes = False
    return Gatekeeper(app, service.metrics)


async def _packed(request: Request, content: bytes, head: int | None) -> Response:
    """The answer, compressed if the client takes that and it is worth it."""
    headers = {} if head is None else {LENGTH_HEADER: str(head)}
    way = _accepted(request.headers.get("accept-encoding", "")) if len(content) >= _WORTH_PACKING else None
    if way is not None:
        pack = gzip.compress if way == "gzip" else zlib.compress
        content = pack(content, 1) if len(content) < _LARGE else await asyncio.to_thread(pack, content, 1)
        headers |= {"content-encoding": way, "vary": "accept-encoding"}
    return Response(content, media_type="application/json" if head is None else "application/octet-stream",
                    headers=headers)  # fmt: skip


def _accepted(header: str) -> str | None:
    for part in header.lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() in ("gzip", "deflate") and weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
            return name.strip()
    return None
