"""One audit as jobs: its steps side by side in several processes, for the figures of one process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from sfumato.auditing import Controls, Effort
from sfumato.auditing.steps import AuditSteps
from sfumato.auditing.trials import Found
from sfumato.core import compute
from sfumato.core.dataset import Splits
from sfumato.core.run_folder import RunFolder
from sfumato.workflow.audited_folder import opened, store
from sfumato.workflow.fitting import splits_of
from sfumato.workflow.processes import Job, Say

Numbers = tuple[int, ...]


@dataclass(frozen=True)
class Order:
    """A run to be audited. ``controls`` is the folder by which processes share the figures of undefended attacks, and
    ``title`` stands before every line of progress."""

    path: Path
    effort: Effort
    controls: Path
    machine: compute.Compute
    title: str = ""


def audit_job(order: Order, *, needs: Sequence[str] = (), after: Callable[[float], None] = lambda _: None) -> Job:
    """The job from which all others of an audit follow; ``after`` is told the seconds of all, once scores are stored.

    AuditSteps that share what they train are one job; those that are likely to be long come first.
    """
    name = f"audit {order.path}"
    found: dict[int, Found] = {}
    spent: list[float] = []

    def parts(opening: tuple[list[Numbers], float]) -> list[Job]:
        groups, seconds = opening
        spent.append(seconds)
        names = [f"{name} {group}" for group in groups]
        each = [
            Job(one, _do, {"order": order, "numbers": group}, then=keep)
            for one, group in zip(names, groups, strict=True)
        ]
        return [*each, Job(f"{name} stored", _conclude, {"order": order, "found": found}, tuple(names), then=end)]

    def keep(part: tuple[dict[int, Found], float]) -> Sequence[Job]:
        found.update(part[0])
        spent.append(part[1])
        return ()

    def end(seconds: float) -> Sequence[Job]:
        after(sum(spent) + seconds)
        return ()

    return Job(name, _open, {"order": order}, tuple(needs), then=parts)


def made_ready(order: Order) -> list[Job]:
    """Jobs beside the first one, by which the other processes read the records meanwhile."""
    return [Job(f"ready {n}", _open, {"order": order, "silent": True}) for n in range(1, order.machine.beside)]


def _open(say: Say, _progress: Any, *, order: Order, silent: bool = False) -> tuple[list[Numbers], float]:
    """Steps to be done together, in the order in which they are begun."""
    started = time.perf_counter()
    with compute.using(order.machine):
        if silent:
            _steps(order)
            return [], 0.0
        groups = _steps(order, partial(_titled, say, order.title)).together()
    return groups, time.perf_counter() - started


def _do(say: Say, _progress: Any, *, order: Order, numbers: Numbers) -> tuple[dict[int, Found], float]:
    started = time.perf_counter()
    with compute.using(order.machine):
        steps = _steps(order)
        return steps.do(numbers, partial(_titled, say, order.title)), time.perf_counter() - started


def _conclude(_say: Say, _progress: Any, *, order: Order, found: dict[int, Found]) -> float:
    started = time.perf_counter()
    with compute.using(order.machine):
        store(RunFolder.open(order.path), _steps(order).joined(found), order.effort)
    return time.perf_counter() - started


_last: tuple[Order, AuditSteps] | None = None


def _steps(order: Order, say: Say = lambda _: None) -> AuditSteps:
    """The steps of the audit that this process works on, with what they have learnt so far."""
    global _last  # noqa: PLW0603 - one audit a process at a time, to spare memory
    if _last is None or _last[0] != order:
        _last = None
        run = RunFolder.open(order.path)
        _last = order, opened(run, order.effort, records_in(run.config()), Controls(order.controls), say)
    return _last[1]


def _titled(say: Say, title: str, what: str) -> None:
    say(f"{title} {what}" if title else what)


def records_in(config: Mapping[str, Any]) -> Splits:
    """The records of a configuration; those of a comparison are read once in each process."""
    return _records(json.dumps(config["data"], sort_keys=True, default=str), config["run"]["seed"])


@lru_cache(maxsize=1)
def _records(data: str, seed: int) -> Splits:
    return splits_of({"data": json.loads(data), "run": {"seed": seed}})
