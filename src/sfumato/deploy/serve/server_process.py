"""Running the service: one process, or several behind one address that are started again when they die."""

from __future__ import annotations

import ipaddress
import logging
import math
import multiprocessing
import os
import signal
import socket
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp
from uvicorn.supervisors.multiprocess import Multiprocess

from sfumato.core.errors import DataError, UsageError
from sfumato.deploy.serve.patient_http import ServeConfig
from sfumato.deploy.serve.serve_log import say, start_log
from sfumato.deploy.serve.settings import ServeSettings

MakeApp = Callable[[ServeSettings], ASGIApp]
_BACKLOG = 2048


def create_plain(settings: ServeSettings) -> ASGIApp:
    """The service alone. It is imported where it is needed: a worker's metrics have to know their folder first."""
    from sfumato.deploy.serve.server_app import create

    return create(settings)


def run(settings: ServeSettings, make: MakeApp = create_plain, *, quiet: bool = False) -> None:
    """Serve until SIGINT or SIGTERM; requests under way are answered first.

    ``make`` builds the application of each worker: a function of a module, or a ``partial`` of one, because every
    worker calls it in a process of its own.

    Raises:
        SfumatoError: The bundle, a file or the address cannot be used.
    """
    start_log(quiet)
    _check_tls(settings)
    with tempfile.TemporaryDirectory(prefix="sfumato-metrics-") as folder, _ended_by_signals():
        if settings.workers > 1:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        app = make(settings)  # here too if there are several workers: what cannot be served is said before any starts
        with _bound(settings) as bound:
            say("listening", url=_url(settings, bound), workers=settings.workers)
            _warn(settings)
            if settings.workers == 1:
                _WorkerServer(_config(settings, lambda: app)).run(sockets=[bound])
            else:
                config = _config(settings, partial(_worker_app, settings, make, quiet))
                Multiprocess(config, target=_WorkerServer(config).run, sockets=[bound]).run()


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """uvicorn stops in good order and then raises the signal once more: inside, that is the end and no error."""
    before = {one: signal.signal(one, signal.default_int_handler) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


class _WorkerServer(uvicorn.Server):
    """Ends in good order when the process is gone that started it: nobody else could stop it then."""

    async def on_tick(self, counter: int) -> bool:
        parent = multiprocessing.parent_process()
        orphaned = counter % 10 == 0 and parent is not None and not parent.is_alive()
        return orphaned or await super().on_tick(counter)


def _worker_app(settings: ServeSettings, make: MakeApp, quiet: bool) -> ASGIApp:
    start_log(quiet)
    return make(settings)


def _config(settings: ServeSettings, factory: Callable[[], ASGIApp]) -> ServeConfig:
    return ServeConfig(
        factory,
        settings,
        factory=True,
        interface="asgi3",
        lifespan="on",
        ws="none",
        workers=settings.workers,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=math.ceil(settings.idle_seconds),
        timeout_graceful_shutdown=math.ceil(settings.grace_seconds),
        timeout_worker_healthcheck=30,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )


def _bound(settings: ServeSettings) -> socket.socket:
    host, port = settings.host, settings.port
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        found = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        said = error.strerror or error
        raise UsageError(f"serve: cannot listen on {host}:{port} ({said}): choose another --host or --port.") from None
    found.set_inheritable(True)
    return found


def _check_tls(settings: ServeSettings) -> None:
    if settings.tls_cert is None or settings.tls_key is None:
        return
    for path in (settings.tls_cert, settings.tls_key):
        if not Path(path).is_file():
            raise DataError(f"{path} does not exist: give certificate and key as PEM files.")

    def no_password() -> str:
        raise DataError(f"{settings.tls_key} has a password: give a key without one that only the service can read.")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key, password=no_password)
    except (ssl.SSLError, OSError):
        raise DataError(
            f"{settings.tls_cert} and {settings.tls_key} are no certificate and its key: give both as PEM files."
        ) from None


def _url(settings: ServeSettings, bound: socket.socket) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{'https' if settings.tls_cert else 'http'}://{host}:{bound.getsockname()[1]}"


def _warn(settings: ServeSettings) -> None:
    """What an operator should know before others can reach the service."""
    try:
        alone = ipaddress.ip_address(settings.host).is_loopback
    except ValueError:
        alone = settings.host == "localhost"
    if alone:
        return
    if settings.token_file is None:
        say("anybody who reaches this address may ask: give --token-file", logging.WARNING)
    if settings.tls_cert is None:
        say("requests and tokens travel in the clear: give --tls-cert and --tls-key, or put a proxy in front",
            logging.WARNING)  # fmt: skip
