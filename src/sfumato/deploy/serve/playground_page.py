"""``sfumato serve --playground``: the page that protects in the browser, and the halves that it needs.

Beside the first bundle's service, each further bundle has one of its own under ``/models/NAME``. The page gets device
halves, finishers and demonstration attackers; cloud halves stay at the server.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.core.errors import DataError, SfumatoError, UsageError
from sfumato.core.run_folder import read_json
from sfumato.deploy.manifest import MANIFEST, Bundle, read_bundle
from sfumato.deploy.serve.refusals import Refused
from sfumato.deploy.serve.server_app import create
from sfumato.deploy.serve.settings import ServeSettings

PAGE = Path(__file__).resolve().parent.parent / "page"
SHOWN = "playground.json"
"""Beside a bundle's manifest, optional: what the page calls its strength, ``{"knob": "λ", "value": "0.1"}``."""
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript",
    ".css": "text/css",
    ".wasm": "application/wasm",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}
_POLICY = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; img-src 'self' blob: data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
AT_SERVER = "cloud"


def create_playground(settings: ServeSettings, bundles: Sequence[Path] = (), page: Path = PAGE) -> ASGIApp:
    """The service of ``settings.bundle`` with the page at ``/playground/`` and a service for each further bundle."""
    if not (page / "index.html").is_file():
        raise UsageError(
            "--playground: the page is not built. It is part of the wheel; in a clone, 'make playground' builds it."
        )
    found = [read_bundle(folder) for folder in (settings.bundle, *bundles)]
    names = [bundle.manifest.name for bundle in found]
    if len(set(names)) < len(names):
        raise DataError(f"--playground: two bundles are called '{_repeated(names)}': export one under another --name.")
    services = [create(replace(settings, bundle=folder)) for folder in bundles]
    mounts = [Mount(f"/models/{name}", app) for name, app in zip(names[1:], services, strict=True)]
    offers = [_offer(bundle, "" if i == 0 else f"/models/{bundle.manifest.name}") for i, bundle in enumerate(found)]
    routes: list[BaseRoute] = [*mounts, *_bundle_routes(found, offers), *_page_routes(page)]
    first = create(settings, routes)
    return _Together(first, services)


class _Together:
    """Several services start and stop as one; every request goes to the first, which knows where the others are."""

    def __init__(self, first: ASGIApp, others: Sequence[ASGIApp]) -> None:
        self._first = first
        self._parent = Starlette(lifespan=self._lifespan)
        self._apps = (first, *others)

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for app in self._apps:
                await stack.enter_async_context(_started(app))
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self._parent if scope["type"] == "lifespan" else self._first)(scope, receive, send)


@asynccontextmanager
async def _started(app: ASGIApp) -> AsyncIterator[None]:
    """``app`` between its start and its stop, as the lifespan part of ASGI has it."""
    asked: asyncio.Queue[Message] = asyncio.Queue()
    told: asyncio.Queue[Message] = asyncio.Queue()
    running = asyncio.create_task(_run_lifespan(app, asked, told))
    try:
        for event in ("startup", "shutdown"):
            await asked.put({"type": f"lifespan.{event}"})
            done = await told.get()
            if done["type"] != f"lifespan.{event}.complete":
                raise SfumatoError(f"serve: a service did not get past its {event}; its log says why.")
            if event == "startup":
                yield
    finally:
        await running


async def _run_lifespan(app: ASGIApp, asked: asyncio.Queue[Message], told: asyncio.Queue[Message]) -> None:
    await app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, asked.get, told.put)


def _repeated(names: Sequence[str]) -> str:
    return next(name for name in names if names.count(name) > 1)


def _offer(bundle: Bundle, url: str) -> dict[str, Any]:
    """A line of the page's list."""
    manifest = bundle.manifest
    shown = bundle.folder / SHOWN
    said = read_json(shown) if shown.is_file() else {}
    return {
        "name": manifest.name,
        "mechanism": manifest.mechanism,
        "knob": str(said.get("knob", "")),
        "value": str(said.get("value", manifest.name)),
        "folder": f"./bundles/{manifest.name}/",
        "url": url,
    }


def _page_routes(page: Path) -> list[BaseRoute]:
    files = {str(file.relative_to(page)): file for file in sorted(page.rglob("*")) if file.is_file()}

    async def asset(request: Request) -> Response:
        file = files.get(request.path_params["path"] or "index.html")
        if file is None:
            raise Refused(404, "unknown", "the playground has no such file.")
        return FileResponse(
            file,
            media_type=_KINDS.get(file.suffix, "application/octet-stream"),
            headers={"content-security-policy": _POLICY, "referrer-policy": "no-referrer"},
        )

    async def slash(_request: Request) -> Response:
        return RedirectResponse("/playground/")

    return [Route("/playground", slash), Route("/playground/{path:path}", asset)]


def _bundle_routes(bundles: Sequence[Bundle], offers: Sequence[dict[str, Any]]) -> list[BaseRoute]:
    files: dict[str, Path] = {}
    for bundle in bundles:
        programs = bundle.manifest.programs
        files |= {
            f"{bundle.manifest.name}/{program.file}": bundle.folder / program.file
            for name, program in programs.items()
            if name != AT_SERVER
        }
        files[f"{bundle.manifest.name}/{MANIFEST}"] = bundle.folder / MANIFEST

    async def listed(_request: Request) -> Response:
        return JSONResponse({"bundles": list(offers)})

    async def half(request: Request) -> Response:
        file = files.get(request.path_params["path"])
        if file is None:
            raise Refused(404, "unknown", "no bundle that is served here has this file, or it stays at the server.")
        return FileResponse(file, media_type="application/octet-stream")

    return [Route("/playground/bundles.json", listed), Route("/playground/bundles/{path:path}", half)]


def write_list(bundles: Sequence[Bundle], file: Path) -> None:
    """``bundles.json`` of the static build, where the cloud halves run in the page as well."""
    offers = [{**_offer(bundle, ""), "url": None} for bundle in bundles]
    file.write_text(json.dumps({"bundles": offers}, indent=2) + "\n")
