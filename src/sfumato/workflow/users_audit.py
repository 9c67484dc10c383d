"""The audit of a folder of users as a whole: each run below it, side by side, and one table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.auditing import CPU, Effort
from sfumato.auditing.result import Say
from sfumato.core import compute
from sfumato.core.run_folder import USERS, read_json
from sfumato.workflow.auditing import audit_run
from sfumato.workflow.processes import Job, places, side_by_side


def is_users_folder(path: Path) -> bool:
    """Whether ``fit --users`` made it."""
    return (path / USERS).is_file()


def audit_users(
    folder: Path, *, effort: Effort = CPU, again: bool = False, say: Say = lambda _: None
) -> list[dict[str, Any]]:
    """Audit the run of every user, as many side by side as the machine may take; who has been audited is left alone
    unless ``again``. ``sfumato report`` and ``sfumato gate`` read ``folder``.

    Gives for each user what was asked, what was spent, and the scores.
    """
    users: list[dict[str, Any]] = read_json(folder / USERS)
    runs = {user["user"]: folder / user["user"] for user in users}
    open_ones = [name for name, run in runs.items() if again or not (run / "scores.json").exists()]
    beside = min(max(1, len(open_ones)), places(compute.MOST_JOBS))
    machine = compute.one_of(beside)
    jobs = [
        Job(name, _audited, {"run": runs[name], "effort": effort, "again": again, "machine": machine})
        for name in open_ones
    ]
    side_by_side(jobs, beside, say, lambda *_: None)
    return [_told(user, read_json(runs[user["user"]] / "scores.json")) for user in users]


def _audited(say: Say, _: Any, *, run: Path, effort: Effort, again: bool, machine: compute.Compute) -> None:
    with compute.using(machine):
        audit_run(run, effort=effort, again=again, say=say)


def _told(user: Mapping[str, Any], scores: Mapping[str, Any]) -> dict[str, Any]:
    return {"point": user["user"], "user": dict(user), **scores}
