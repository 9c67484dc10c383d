"""Figures for Prometheus: counts and times, nothing about what is in a request.

With several workers the figures of all are added up: each keeps its own in the folder ``PROMETHEUS_MULTIPROC_DIR``,
which has to be set before this module is imported.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client import multiprocess as several_processes

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
disable_created_metrics()  # type: ignore[no-untyped-call]  # a time beside each figure, which nobody reads
_LIVE = re.compile(r"gauge_live\w+_(\d+)\.db")


class ServeMetrics:
    """The figures of one worker; it observes the queue of its model (``batching.Observer``)."""

    def __init__(self) -> None:
        own = CollectorRegistry()
        self._own = own
        self._requests = Counter("sfumato_requests", "Requests by route and status.", ("route", "status"), registry=own)
        self._refused = Counter("sfumato_refused", "Requests not served, by reason.", ("reason",), registry=own)
        self._seconds = Histogram(
            "sfumato_request_seconds", "From the headers of a request to its answer.", ("route",),
            buckets=_SECONDS, registry=own,
        )  # fmt: skip
        self._batch = Histogram("sfumato_batch_rows", "Rows computed at once.", buckets=_ROWS, registry=own)
        self._compute = Histogram("sfumato_compute_seconds", "Time of a batch.", buckets=_SECONDS, registry=own)
        self._rows = Counter("sfumato_rows", "Rows computed.", registry=own)
        self._queue = Gauge("sfumato_queue_rows", "Rows that wait.", registry=own, multiprocess_mode="livesum")
        self._held = Gauge(
            "sfumato_held_bytes", "Bytes of requests under way.", registry=own, multiprocess_mode="livesum"
        )

    def answered(self, route: str, status: int, seconds: float) -> None:
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def refused(self, reason: str) -> None:
        self._refused.labels(reason).inc()

    def holds(self, held: int) -> None:
        self._held.set(held)

    def queued(self, rows: int) -> None:
        self._queue.set(rows)

    def computed(self, rows: int, requests: int, seconds: float) -> None:
        self._batch.observe(rows)
        self._compute.observe(seconds)
        self._rows.inc(rows)

    def page(self) -> bytes:
        """The text that Prometheus reads."""
        folder = os.environ.get(FOLDER_VARIABLE)
        if folder is None:
            return generate_latest(self._own)
        _bury_dead(Path(folder))
        registry = CollectorRegistry()
        several_processes.MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


def _bury_dead(folder: Path) -> None:
    """Gauges of a worker that was killed do not count any more."""
    for path in folder.glob("gauge_live*.db"):
        found = _LIVE.fullmatch(path.name)
        if found and not Path(f"/proc/{found[1]}").exists() and Path("/proc/self").exists():
            path.unlink(missing_ok=True)
