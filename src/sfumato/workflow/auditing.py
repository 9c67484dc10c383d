"""From a fitted run folder to its audit."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sfumato.auditing import CPU, Controls, Effort
from sfumato.auditing.result import Say
from sfumato.core import compute
from sfumato.core.dataset import Splits
from sfumato.core.run_folder import read_json
from sfumato.mechanisms import load_mechanism
from sfumato.mechanisms.base import no_progress
from sfumato.workflow.audit_jobs import Order, audit_job, made_ready
from sfumato.workflow.audited_folder import opened, store, to_be_audited
from sfumato.workflow.processes import places, side_by_side


def audit_run(
    path: Path,
    *,
    effort: Effort = CPU,
    again: bool = False,
    splits: Splits | None = None,
    controls: Controls | None = None,
    say: Say = lambda _: None,
) -> dict[str, Any]:
    """Attack the mechanism in a run folder and store what was found there.

    Independent attacks run side by side, in as many processes as ``core.compute`` allows, for the same figures; but not
    if networks are on another device, or if ``splits`` or ``controls`` are given, which belong to this process.
    """
    run = to_be_audited(path, again=again)
    apart = splits is None and controls is None and compute.on_cpu()
    jobs = places(compute.MOST_JOBS) if apart else 1
    if jobs == 1:
        return store(run, opened(run, effort, splits, controls or Controls(), say).audit(say), effort)
    run.config(), load_mechanism(path)  # what is damaged is said before processes begin
    with TemporaryDirectory(dir=path, prefix=".controls-") as shared:  # where other machines see it
        order = Order(path, effort, Path(shared), compute.one_of(jobs))
        side_by_side([audit_job(order), *made_ready(order)], jobs, say, no_progress)
    scores: dict[str, Any] = read_json(path / "scores.json")
    return scores
