"""What of the machine a fit or an audit uses. Nothing here changes what is computed: only how fast.

One place decides. Small networks lose more to a second thread than they gain: two threads that wait for each other cost
a fit of ``filter`` three times the time of one, and more beside a busy neighbour. So they train on one thread, and the
other cores get other work: points of a comparison, seeds of a study.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from sfumato.core.errors import UsageError

SMALL = 2_000
"""Records of so many numbers and fewer make networks that are fastest on one thread (``make bench``: threads)."""
MOST_JOBS = 256


@dataclass(frozen=True)
class Compute:
    """``threads`` of each process (None: chosen by the work) and ``jobs`` side by side.

    ``beside`` processes share the cores. A program that imports sfumato has one job unless it asks for more, because
    processes of its own are its business; commands use all cores.
    """

    threads: int | None = None
    jobs: int = 1
    beside: int = 1

    def __post_init__(self) -> None:
        for name, value in (("threads", 1 if self.threads is None else self.threads), ("jobs", self.jobs)):
            if not 1 <= value <= MOST_JOBS:
                raise UsageError(f"--{name} is {value}: give a number from 1 to {MOST_JOBS}.")


_ONE = Compute()
_chosen: ContextVar[Compute] = ContextVar("compute", default=_ONE)


@contextmanager
def using(compute: Compute) -> Iterator[None]:
    """What is fitted and audited inside uses this much."""
    token = _chosen.set(compute)
    try:
        yield
    finally:
        _chosen.reset(token)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def jobs(tasks: int) -> int:
    """How many of so many tasks run side by side."""
    return max(1, min(tasks, _chosen.get().jobs))


def one_of(beside: int) -> Compute:
    """For each of so many processes that run side by side."""
    return Compute(_chosen.get().threads, 1, beside)


def threads_for(numbers: int) -> int:
    """How many threads serve networks for records of so many numbers best."""
    chosen = _chosen.get()
    return chosen.threads or (1 if numbers <= SMALL else max(1, cores() // chosen.beside))


@contextmanager
def threads(numbers: int) -> Iterator[None]:
    """Inside, torch and the linear algebra of numpy, scipy and scikit-learn work with the threads that suit records of
    so many numbers."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(threads_for(numbers))
    try:
        with threadpool_limits(threads_for(numbers)):
            yield
    finally:
        torch.set_num_threads(before)
