"""Independent tasks side by side, each in a process of its own; what needs another's result waits for it.

The processes are this machine's, unless an ``Engine`` is chosen that has others.
"""

from __future__ import annotations

import multiprocessing
import queue
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from multiprocessing.queues import Queue
from typing import Any, Protocol

from sfumato.core import compute
from sfumato.core.errors import DataError
from sfumato.mechanisms.base import Progress

Say = Callable[[str], None]
_POLL = 0.2
"""Seconds after which the listener looks whether the work is over."""
_PATIENCE = 2.0
"""Seconds that the listener gets to end: a process that was stopped while it spoke leaves half a line behind."""


@dataclass(frozen=True)
class Job:
    """``work(say, progress, **arguments)``, after all of ``needs``; a function that other processes can import.

    ``then`` is called here with its result and says what is to be done next.
    """

    name: str
    work: Callable[..., Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    then: Callable[[Any], Sequence[Job]] | None = None


Submit = Callable[[Job], "Future[Any]"]
"""Begins a job somewhere."""


class Engine(Protocol):
    """Where jobs are done, if not in processes of this machine."""

    @property
    def workers(self) -> int:
        """How many jobs it does at once."""

    def opened(self, say: Say) -> AbstractContextManager[Submit]:
        """Takes jobs inside; ``say`` hears what they say, and an error of theirs is raised as it is."""


_engine: ContextVar[Engine | None] = ContextVar("engine", default=None)


@contextmanager
def on(engine: Engine | None) -> Iterator[None]:
    """What is done side by side inside is done by this engine."""
    token = _engine.set(engine)
    try:
        yield
    finally:
        _engine.reset(token)


def places(tasks: int) -> int:
    """How many of so many tasks are done side by side; 1 means here."""
    engine = _engine.get()
    return compute.jobs(tasks) if engine is None else max(2, engine.workers)


def side_by_side(tasks: Sequence[Job], jobs: int, say: Say, progress: Progress) -> None:
    """Do all tasks and what follows from them, so many at once; with one job, here and one after the other.

    The first error stops what has not begun, waits for what runs, and is raised.
    """
    engine = _engine.get()
    if jobs > 1 and tasks and engine is not None:
        with engine.opened(say) as submit:
            _schedule(submit, tasks)
        return
    if jobs == 1 or not tasks:
        for task in tasks:
            found = task.work(say, progress, **task.arguments)
            side_by_side([] if task.then is None else task.then(found), 1, say, progress)
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy torch's threads and locks
    heard: Queue[str] = context.Queue()
    over = threading.Event()
    listener = threading.Thread(target=_listen, args=(heard, say, over), daemon=True)
    listener.start()
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(heard,))
    try:
        _schedule(lambda task: pool.submit(_work, replace(task, then=None)), tasks)
    except BrokenProcessPool:
        raise DataError(
            "a worker process was killed, perhaps for want of memory: the same command goes on; try --jobs 1."
        ) from None
    except BaseException:
        _stop()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        over.set()
        listener.join(_PATIENCE)


def _schedule(submit: Submit, tasks: Sequence[Job]) -> None:
    waiting, done = list(tasks), set[str]()
    running: dict[Future[Any], Job] = {}
    while waiting or running:
        ready = [task for task in waiting if set(task.needs) <= done]
        for task in ready:
            running[submit(task)] = task
        waiting = [task for task in waiting if task not in ready]
        finished, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in finished:
            task = running.pop(future)
            found = future.result()
            waiting += [] if task.then is None else task.then(found)
            done.add(task.name)


def _stop() -> None:
    """Ctrl-C or an error: nobody waits for work that nobody wants."""
    for process in multiprocessing.active_children():
        process.terminate()


_heard: Queue[str] | None = None


def _begin(heard: Queue[str]) -> None:
    """In a new process: the parent alone hears Ctrl-C, and stops its children."""
    global _heard  # noqa: PLW0603 - one a process, set before any task
    _heard = heard
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # as in the parent: libraries warn their callers


def _work(task: Job) -> Any:
    assert _heard is not None  # _begin has set it
    return task.work(_heard.put, lambda *_: None, **task.arguments)


def _listen(heard: Queue[str], say: Say, over: threading.Event) -> None:
    while not over.is_set():
        try:
            say(heard.get(timeout=_POLL))
        except queue.Empty:
            continue
