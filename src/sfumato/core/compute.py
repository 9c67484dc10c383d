"""What of the machine a fit or an audit uses. But for the precision, this changes how fast it is, not what is computed.

One place decides. Small networks lose more to a second thread than they gain: two threads that wait for each other cost
a fit of ``filter`` three times the time of one, and more beside a busy neighbour. So they train on one thread, and the
other cores get other work: points of a comparison, seeds of a study.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.core import ranks
from sfumato.core.errors import UsageError

if TYPE_CHECKING:
    from sfumato.core.accelerator import Placement

T = TypeVar("T")

SMALL = 2_000
"""Records of so many numbers and fewer make networks that are fastest on one thread (``make bench``: threads)."""
MOST_JOBS = 256
PRECISIONS = ("auto", "fp32", "bf16")
_DEVICES = re.compile(r"auto|cpu|mps|cuda(:\d{1,3})?")


@dataclass(frozen=True)
class Compute:
    """``threads`` of each process (None: chosen by the work) and ``jobs`` side by side; ``device`` and ``precision`` of
    networks.

    ``beside`` processes share the cores. A program that imports sfumato has one job and the CPU unless it asks for
    more, because processes of its own are its business; commands use all cores and a graphics card.
    """

    threads: int | None = None
    jobs: int = 1
    beside: int = 1
    device: str = "cpu"
    precision: str = "fp32"

    def __post_init__(self) -> None:
        for name, value in (("threads", 1 if self.threads is None else self.threads), ("jobs", self.jobs)):
            if not 1 <= value <= MOST_JOBS:
                raise UsageError(f"--{name} is {value}: give a number from 1 to {MOST_JOBS}.")
        if not _DEVICES.fullmatch(self.device):
            raise UsageError(
                f"--device is '{self.device}': give auto, cpu, cuda, cuda:1 (a card by its number) or mps."
            )
        if self.precision not in PRECISIONS:
            raise UsageError(f"--precision is '{self.precision}': give {', '.join(PRECISIONS)}.")


_ONE = Compute()
_chosen: ContextVar[Compute] = ContextVar("compute", default=_ONE)
_placement: ContextVar[Placement | None] = ContextVar("placement", default=None)


@contextmanager
def using(compute: Compute) -> Iterator[None]:
    """What is fitted and audited inside uses this much, and what was brought to the device comes back at the end."""
    with ExitStack() as entered:
        if compute.device != "cpu":
            from sfumato.core.accelerator import Placement, found

            device = found(compute.device)
            compute = replace(compute, device=str(device))
            if device.type != "cpu":
                entered.enter_context(placed(Placement(device, doubles=device.type != "mps")))
        token = _chosen.set(compute)
        try:
            yield
        finally:
            _chosen.reset(token)


@contextmanager
def placed(placement: Placement) -> Iterator[None]:
    """Inside, tensors live where ``placement`` puts them."""
    token = _placement.set(placement)
    try:
        with placement:
            yield
    finally:
        _placement.reset(token)


def bring(guest: T) -> T:
    """``guest``, with every network and tensor in it on the chosen device; they go back to the CPU afterwards."""
    placement = _placement.get()
    if placement is not None:
        placement.bring(guest)
    return guest


def device() -> str:
    """Where networks are computed, as ``Compute`` names it."""
    return _chosen.get().device


def on_cpu() -> bool:
    """Whether networks are computed by the processor; a graphics card is best left to one process."""
    return _chosen.get().device == "cpu"


def recorded() -> dict[str, Any]:
    """What was chosen, for the record of a run."""
    chosen = _chosen.get()
    together = {"processes": ranks.count()} if ranks.count() > 1 else {}
    return {name: getattr(chosen, name) for name in ("device", "threads", "jobs")} | together


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def jobs(tasks: int) -> int:
    """How many of so many tasks run side by side."""
    return max(1, min(tasks, _chosen.get().jobs))


def one_of(beside: int) -> Compute:
    """For each of so many processes that run side by side."""
    return replace(_chosen.get(), jobs=1, beside=beside)


def threads_for(numbers: int) -> int:
    """How many threads serve networks for records of so many numbers best."""
    chosen = _chosen.get()
    return chosen.threads or (1 if numbers <= SMALL else max(1, cores() // chosen.beside))


@contextmanager
def threads(numbers: int) -> Iterator[None]:
    """Inside, torch and the linear algebra of numpy, scipy and scikit-learn work with the threads, and networks train
    with the precision, that suit records of so many numbers."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(threads_for(numbers))
    token = _chosen.set(replace(_chosen.get(), precision=precision_for(numbers)))
    try:
        with threadpool_limits(threads_for(numbers)):
            yield
    finally:
        _chosen.reset(token)
        torch.set_num_threads(before)


def precision_for(numbers: int) -> str:
    """The precision in which networks for records of so many numbers are trained.

    By itself bf16 only on a graphics card that has it in hardware, and for records that are not small, because it
    changes figures (``python -m benchmarks precision`` measures what it saves and changes).
    """
    chosen = _chosen.get()
    if chosen.precision != "auto":
        return chosen.precision
    if not chosen.device.startswith("cuda") or numbers <= SMALL:
        return "fp32"
    import torch

    return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"


@contextmanager
def learning() -> Iterator[None]:
    """Inside, products and convolutions of networks are computed in the chosen precision: for steps of training alone,
    never for what is released, scored, counted or noised. Weights, gradients and losses stay in fp32."""
    if _chosen.get().precision != "bf16":
        yield
        return
    import torch

    kind = _chosen.get().device.partition(":")[0]
    with torch.autocast(
        kind, torch.bfloat16, cache_enabled=False
    ):  # a cache would outlive the step that changes weights
        yield


@contextmanager
def exact() -> Iterator[None]:
    """Inside, everything is computed in fp32 again."""
    if _chosen.get().precision != "bf16":
        yield
        return
    import torch

    with torch.autocast(_chosen.get().device.partition(":")[0], enabled=False):
        yield
