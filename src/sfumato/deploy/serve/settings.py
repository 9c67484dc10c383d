"""How the service is set up: every limit in one place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sfumato.core.errors import UsageError

MIB = 2**20


@dataclass(frozen=True)
class ServeSettings:
    """Limits are those of one worker, but for ``workers`` itself. Times are in seconds.

    bundle            folder that ``sfumato export`` made
    max_batch         most rows that the model computes at once
    queue_rows        rows that may wait; a request beyond is answered 503, one of more rows 413
    max_request       bytes of a request, also after decompression, and of an answer
    max_json          bytes of JSON in it: a JSON number costs far more memory than a binary one
    max_held          bytes of all requests that are read or wait at the same time
    timeout           from the last byte of a request to its answer
    head_seconds      for all headers of a request
    body_seconds      for its body
    stall_seconds     that a client may leave an answer unread
    idle_seconds      that a connection may stay open between requests
    grace_seconds     for requests under way when the service is told to stop
    """

    bundle: Path
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    threads: int | None = None
    max_batch: int = 32
    queue_rows: int = 1024
    max_request: int = 16 * MIB
    max_json: int = 4 * MIB
    max_held: int = 256 * MIB
    max_connections: int = 1000
    max_head: int = 32 * 1024
    timeout: float = 30.0
    head_seconds: float = 10.0
    body_seconds: float = 20.0
    stall_seconds: float = 20.0
    idle_seconds: float = 30.0
    grace_seconds: float = 30.0
    token_file: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None

    def __post_init__(self) -> None:
        for name in ("workers", "max_batch", "queue_rows", "max_request", "max_json", "max_held", "max_connections"):
            if getattr(self, name) < 1:
                raise UsageError(f"serve: {name} must be 1 or more, got {getattr(self, name)}.")
        for name in ("timeout", "head_seconds", "body_seconds", "stall_seconds", "idle_seconds", "grace_seconds"):
            if not 0 < getattr(self, name) < 86_400:
                raise UsageError(f"serve: {name} must be more than 0 s and less than a day, got {getattr(self, name)}.")
        if self.threads is not None and self.threads < 1:
            raise UsageError(f"serve: threads must be 1 or more, got {self.threads}.")
        if not 0 <= self.port < 65_536:
            raise UsageError(f"serve: port must lie in 0 … 65535, got {self.port}.")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise UsageError("serve: TLS needs both a certificate (--tls-cert) and its key (--tls-key).")

    @property
    def json_limit(self) -> int:
        """Most bytes of JSON, which is never more than the whole request."""
        return min(self.max_json, self.max_request)
