"""Independent tasks side by side, each in a process of its own; what needs another's result waits for it."""

from __future__ import annotations

import multiprocessing
import queue
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from multiprocessing.queues import Queue
from typing import Any

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


def side_by_side(tasks: Sequence[Job], jobs: int, say: Say, progress: Progress) -> None:
    """Do all tasks and what follows from them, so many at once; with one job, here and one after the other.

    The first error stops what has not begun, waits for what runs, and is raised.
    """
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
        _schedule(pool, tasks)
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


def _schedule(pool: ProcessPoolExecutor, tasks: Sequence[Job]) -> None:
    waiting, done = list(tasks), set[str]()
    running: dict[Future[Any], Job] = {}
    while waiting or running:
        ready = [task for task in waiting if set(task.needs) <= done]
        for task in ready:
            running[pool.submit(_work, replace(task, then=None))] = task
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
