"""Clients that ask without pause on connections of their own, each answer checked; in one event loop, so that they
cost little beside the service."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.made_bundle import NAME

_CLOSE = 1e-3


@dataclass(frozen=True)
class Question:
    """The bytes of a request, and the scores that are right."""

    sent: bytes
    right: np.ndarray


@dataclass
class Load:
    """What happened: seconds of every served request, statuses, and answers that were wrong."""

    rows: int = 0
    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: int = 0
    without_retry: int = 0
    took: float = 0.0

    @property
    def rows_a_second(self) -> float:
        return self.rows / self.took

    def quantile_ms(self, share: float) -> float:
        return float(1000 * np.quantile(self.seconds, share))


def question(x: np.ndarray, right: np.ndarray) -> Question:
    """One request with raw tensors both ways."""
    tensor = {
        "name": "payload",
        "datatype": "FP32",
        "shape": list(x.shape),
        "parameters": {"binary_data_size": x.nbytes},
    }
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    line = (
        f"POST /v2/models/{NAME}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(head) + x.nbytes}\r\n"
        f"Inference-Header-Content-Length: {len(head)}\r\n\r\n"
    )
    return Question(line.encode() + head + x.tobytes(), right)


class _Client(asyncio.Protocol):
    def __init__(self, questions: Sequence[Question], first: int, load: Load, end: float) -> None:
        self._questions, self._next, self._load, self._end = questions, first, load, end
        self._found = bytearray()
        self._since = 0.0
        self._scale = max(1.0, *(float(np.abs(one.right).max()) for one in questions))
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self._load.statuses[0] += 1  # the service hung up
            self.done.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._found += data
        gap = self._found.find(b"\r\n\r\n")
        if gap < 0:
            return
        head = bytes(self._found[:gap]).lower()
        if len(self._found) < gap + 4 + _number(head, b"content-length"):
            return
        self._take(int(head[9:12]), head, bytes(self._found[gap + 4 :]))
        self._found.clear()
        if time.perf_counter() < self._end:
            self._ask()
        else:
            self.done.set_result(None)
            self._transport.close()

    def _ask(self) -> None:
        self._next = (self._next + 1) % len(self._questions)
        self._since = time.perf_counter()
        self._transport.write(self._questions[self._next].sent)

    def _take(self, status: int, head: bytes, content: bytes) -> None:
        self._load.statuses[status] += 1
        if status != 200:
            self._load.without_retry += b"retry-after" not in head
            return
        right = self._questions[self._next].right
        scores = np.frombuffer(content, np.float32, offset=_number(head, b"inference-header-content-length"))
        # The client shares the machine: np.allclose would cost as much as the rest of it.
        fits = scores.size == right.size and float(np.abs(scores - right.ravel()).max()) < _CLOSE * self._scale
        self._load.wrong += not fits
        self._load.rows += len(right)
        self._load.seconds.append(time.perf_counter() - self._since)


def ask_for(address: tuple[str, int], questions: Sequence[Question], *, clients: int, seconds: float) -> Load:
    """So many clients, each with one request under way, for so long."""
    return asyncio.run(_ask_for(address, questions, clients, seconds))


async def _ask_for(address: tuple[str, int], questions: Sequence[Question], clients: int, seconds: float) -> Load:
    loop, load = asyncio.get_running_loop(), Load()
    started = time.perf_counter()
    end = started + seconds
    each = [
        await loop.create_connection(lambda first=first: _Client(questions, first, load, end), *address)  # type: ignore[misc]
        for first in range(clients)
    ]
    await asyncio.gather(*(client.done for _, client in each))
    load.took = time.perf_counter() - started
    return load


def _number(head: bytes, name: bytes) -> int:
    at = head.find(b"\r\n" + name + b":")
    return int(head[at + len(name) + 3 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
