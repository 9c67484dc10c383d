"""Dynamic batching: what arrives while the model computes is computed together next.

No request waits for company: a lone one is computed at once, and under load batches grow by themselves up to the limit.
The queue is bounded in rows; what does not fit is refused with the time after which to come back.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from sfumato.deploy.serve.refusals import busy
from sfumato.deploy.serve.tensors import Array, not_finite

Tensors = Mapping[str, Array]
_LONGEST_RETRY = 60


class Computes(Protocol):
    """A model: rows in, as many rows out; raises ``Refused`` for values that it cannot compute."""

    def compute(self, inputs: Tensors) -> dict[str, Array]: ...


class Observer(Protocol):
    """Who counts what the queue does."""

    def queued(self, rows: int) -> None: ...

    def computed(self, rows: int, requests: int, seconds: float) -> None: ...


@dataclass
class _Waiting:
    inputs: Tensors
    rows: int
    answer: asyncio.Future[dict[str, Array]]
    since: float = field(default_factory=time.monotonic)


class Batcher:
    """One queue and one computing thread for one model. ``start`` and ``close`` belong to the event loop."""

    def __init__(self, model: Computes, *, max_batch: int, queue_rows: int, observer: Observer) -> None:
        self._model = model
        self._max_batch = max_batch
        self._queue_rows = queue_rows
        self._observer = observer
        self._waiting: deque[_Waiting] = deque()
        self._rows = 0
        self._seconds_per_row = 0.0
        self._wake = asyncio.Event()
        self._closing = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def close(self) -> None:
        """Answer what waits, take nothing more, and stop."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            await self._task
        self._thread.shutdown()

    async def ask(self, inputs: Tensors, rows: int, seconds: float) -> dict[str, Array]:
        """The model's answer; ``Refused`` with 503 if the queue is full or the time is over."""
        if self._closing:
            raise busy("stopping", "the service is stopping.")
        if self._rows and self._rows + rows > self._queue_rows:
            raise busy("queue-full", "too many requests are waiting.", self._retry_after(rows))
        one = _Waiting(inputs, rows, asyncio.get_running_loop().create_future())
        self._waiting.append(one)
        self._count(rows)
        self._wake.set()
        try:
            async with asyncio.timeout(seconds):
                return await one.answer
        except TimeoutError:
            raise busy("overdue", f"no answer within {seconds:g} s.", self._retry_after(rows)) from None

    def _retry_after(self, rows: int) -> int:
        return min(_LONGEST_RETRY, math.ceil(self._seconds_per_row * (self._rows + rows)))

    def _count(self, rows: int) -> None:
        self._rows += rows
        self._observer.queued(self._rows)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while not (self._closing and not self._waiting):
            if not self._waiting:
                self._wake.clear()
                await self._wake.wait()
            await asyncio.sleep(0)  # whatever else has arrived by now gets its turn to be queued
            batch = self._next()
            if batch:
                await loop.run_in_executor(self._thread, self._run, batch, loop)

    def _next(self) -> list[_Waiting]:
        """The oldest requests that fit; those that nobody waits for any more are left out."""
        batch: list[_Waiting] = []
        rows = 0
        while self._waiting and (not batch or rows + self._waiting[0].rows <= self._max_batch):
            one = self._waiting.popleft()
            self._count(-one.rows)
            if not one.answer.done():
                batch.append(one)
                rows += one.rows
        return batch

    def _run(self, batch: Sequence[_Waiting], loop: asyncio.AbstractEventLoop) -> None:
        """In the computing thread."""
        started = time.monotonic()
        rows = sum(one.rows for one in batch)
        answers = self._answers(batch)
        seconds = time.monotonic() - started
        loop.call_soon_threadsafe(self._hand_out, batch, answers, rows, seconds)

    def _hand_out(
        self, batch: Sequence[_Waiting], answers: Sequence[dict[str, Array] | Exception], rows: int, seconds: float
    ) -> None:
        self._seconds_per_row += 0.2 * (seconds / rows - self._seconds_per_row)
        self._observer.computed(rows, len(batch), seconds)
        for one, answer in zip(batch, answers, strict=True):
            if one.answer.done():
                continue
            if isinstance(answer, Exception):
                one.answer.set_exception(answer)
            else:
                one.answer.set_result(answer)

    def _answers(self, batch: Sequence[_Waiting]) -> list[dict[str, Array] | Exception]:
        """One for each request; what fails together is computed alone, so that nobody suffers for another."""
        together = {name: np.concatenate([one.inputs[name] for one in batch]) for name in batch[0].inputs}
        try:
            found = self._sliced(together, batch)
        except Exception as error:
            return [error] if len(batch) == 1 else [self._answers([one])[0] for one in batch]
        answers: list[dict[str, Array] | Exception] = []
        begin = 0
        for one in batch:
            own = {name: value[begin : begin + one.rows] for name, value in found.items()}
            answers.append(own if _is_finite(own) else not_finite())
            begin += one.rows
        return answers

    def _sliced(self, inputs: Tensors, batch: Sequence[_Waiting]) -> dict[str, Array]:
        """A request of many rows is computed in pieces, so that its memory is bounded; only while somebody waits."""
        rows = sum(one.rows for one in batch)
        pieces = []
        for begin in range(0, rows, self._max_batch):
            if all(one.answer.done() for one in batch):
                raise busy("overdue", "nobody waits for the answer any more.")
            pieces.append(
                self._model.compute({name: value[begin : begin + self._max_batch] for name, value in inputs.items()})
            )
        return pieces[0] if len(pieces) == 1 else {n: np.concatenate([piece[n] for piece in pieces]) for n in pieces[0]}


def _is_finite(found: Tensors) -> bool:
    return all(value.dtype.kind != "f" or bool(np.isfinite(value).all()) for value in found.values())
