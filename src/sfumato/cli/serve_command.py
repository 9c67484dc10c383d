"""``sfumato serve``: the cloud half of a bundle, for devices and standard clients."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.options import Quiet
from sfumato.core.errors import UsageError


def serve(
    bundle: Annotated[Path, typer.Argument(help="A folder that sfumato export made.", metavar="BUNDLE")],
    further: Annotated[
        list[Path] | None, typer.Argument(help="More of them, with --playground.", metavar="[BUNDLE]...")
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Address to listen on; 0.0.0.0: all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any free one.")] = 8080,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes, each with its own model.")] = 1,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="Threads of each worker's model; default: cores / workers.")
    ] = None,
    max_batch: Annotated[int, typer.Option("--max-batch", min=1, help="Most rows computed at once.")] = 32,
    queue: Annotated[
        int,
        typer.Option("--queue", min=1, help="Rows that may wait in each worker; what is beyond is told to come back."),
    ] = 1024,
    max_request: Annotated[
        int,
        typer.Option("--max-request", min=1024, help="Bytes of a request, also after decompression, and of an answer."),
    ] = 16 * 2**20,
    timeout: Annotated[float, typer.Option("--timeout", min=0.01, help="Seconds until a request is answered.")] = 30.0,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="Bearer tokens, one a line; default: everybody may ask.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option("--tls-cert", help="Certificate chain (PEM).")] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", help="Private key of the certificate (PEM).")] = None,
    playground: Annotated[
        bool, typer.Option("--playground", help="Also a page at /playground/ that protects in the browser.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Serve the cloud half of BUNDLE over the Open Inference Protocol v2 until Ctrl-C or SIGTERM.

    It takes protected tensors and never records. Log: JSON lines on stderr, without payloads. Metrics: /metrics,
    description: /docs.
    """
    from sfumato.core.extras import require

    require("deploy", "sfumato serve", "onnxruntime", "starlette", "uvicorn", "httptools", "prometheus_client")
    from sfumato.deploy.serve import ServeSettings, run

    settings = ServeSettings(
        bundle=bundle,
        host=host,
        port=port,
        workers=workers,
        threads=threads,
        max_batch=max_batch,
        queue_rows=queue,
        max_request=max_request,
        max_held=max(ServeSettings.max_held, 4 * max_request),
        timeout=timeout,
        token_file=token_file,
        tls_cert=tls_cert,
        tls_key=tls_key,
    )
    if not playground:
        if further:
            raise UsageError("serve takes one bundle; several only with --playground. Start a service for each.")
        run(settings, quiet=quiet)
        return
    from sfumato.deploy.serve.playground_page import create_playground

    run(settings, partial(create_playground, bundles=tuple(further or ())), quiet=quiet)
