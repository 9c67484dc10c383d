"""One candidate tried: fitted, looked at for its utility, then attacked; here or in another process."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sfumato.auditing import Controls, Effort
from sfumato.auditing.steps import AuditSteps
from sfumato.auditing.trials import Found
from sfumato.core import compute
from sfumato.core.errors import GateFailed, SfumatoError
from sfumato.core.policy import UTILITY_METRICS, Policy
from sfumato.core.run_folder import RunFolder, read_json, write_json
from sfumato.core.score import Score
from sfumato.mechanisms.base import Progress
from sfumato.workflow.audit_jobs import records_in
from sfumato.workflow.audited_folder import opened, store
from sfumato.workflow.fitting import fit_run
from sfumato.workflow.processes import Say
from sfumato.workflow.protect.margins import about_utility, checks_at, standing
from sfumato.workflow.protect.time_limit import OutOfTime

ATTEMPT = "attempt.json"
"""What became of a candidate, in its folder; written last."""


@dataclass(frozen=True)
class Trying:
    """A candidate to be tried in ``folder``; a fit that is not over at ``until`` is stopped.

    With ``thorough`` an audit of the finished fit at full effort, whose figures replace the cheap ones. What is said
    ``about`` it is stored with the outcome.
    """

    folder: Path
    config: Mapping[str, Any]
    policy: Policy
    effort: Effort
    controls: Path
    machine: compute.Compute
    until: float | None = None
    title: str = ""
    thorough: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)


def attempt(say: Say, progress: Progress, *, order: Trying) -> dict[str, Any]:
    """Try a candidate and store what became of it in its folder.

    ``state`` is ``audited``; ``hopeless``, if utility is below its limit by any end of its interval, so that no attack
    was run; ``stopped``, if time ran out; or ``refused``, if the mechanism cannot be fitted to these records, and
    ``why``.
    """
    if not order.thorough and (order.folder / ATTEMPT).is_file():  # the search was killed before it heard of it
        known: dict[str, Any] = read_json(order.folder / ATTEMPT)
        return known
    with compute.using(order.machine):
        found = {**_attempt(say, progress, order), "about": dict(order.about)}
    if found["state"] != "stopped":  # it goes on if there is more time
        order.folder.mkdir(parents=True, exist_ok=True)
        write_json(order.folder / ATTEMPT, found)
    return found


def _attempt(say: Say, progress: Progress, order: Trying) -> dict[str, Any]:
    before: dict[str, Any] = read_json(order.folder / ATTEMPT) if order.thorough else {}
    began = time.perf_counter()
    splits = records_in(order.config)
    told: list[int] = [0, 0]

    def watched(done: int, total: int, metrics: Mapping[str, float]) -> None:
        told[:] = [done, total]
        if order.until is not None and time.time() > order.until and done < total:
            raise OutOfTime(f"{done} of {total} rounds were done")
        progress(done, total, metrics)

    try:
        if not order.thorough:
            say(f"{order.title}: fit")
            fit_run(dict(order.config), order.folder, resume=True, splits=splits, progress=watched)
            if order.until is not None and time.time() > order.until:
                raise OutOfTime("it was over too late")
        fitted = time.perf_counter()
        say(f"{order.title}: {'attacks at full effort' if order.thorough else 'utility, then attacks'}")
        run = RunFolder.open(order.folder)
        steps = opened(run, order.effort, splits, Controls(order.controls), lambda _: None)
        found, hopeless, done = _in_steps(steps, order)
    except OutOfTime as error:
        spent = time.perf_counter() - began
        whole = spent * told[1] / max(1, told[0])
        return {"state": "stopped", "why": str(error), "fit_seconds": spent, "whole_fit": whole, "attack_steps": 0}
    except GateFailed:
        raise
    except SfumatoError as error:
        return {"state": "refused", "why": str(error), "fit_seconds": time.perf_counter() - began, "attack_steps": 0}
    counted = {
        "fit_seconds": round(fitted - began, 2) if not order.thorough else before["fit_seconds"],
        "audit_seconds": round(time.perf_counter() - fitted, 2),
        "attack_steps": before.get("attack_steps", 0) + done * order.effort.attack_steps,
    }
    if hopeless is not None:
        return {"state": "hopeless", "why": hopeless, "standing": None, **counted}
    store(run, steps.joined(found), order.effort)
    scores = read_json(order.folder / "scores.json")
    placed = standing(scores, order.policy)
    stage = "full" if order.thorough else "cheap"
    cheap = {"cheap": before["standing"]} if order.thorough else {}
    return {"state": "audited", "stage": stage, "why": "", "standing": placed.to_json(), **cheap, **counted}


def _in_steps(steps: AuditSteps, order: Trying) -> tuple[dict[int, Found], str | None, int]:
    """What the steps of an audit found, utility first; why the rest was left out; and how many attacks were run."""
    found: dict[int, Found] = {}
    first = [number for number, step in enumerate(steps.every) if not step.learners and step.name in _EASY]
    found |= steps.do(first, lambda _: None)
    served = [score for one in found.values() for score in one.useful]
    why = _clearly_useless(served, order.policy)
    if why is not None:
        return found, why, 0
    rest = [number for number in range(len(steps.every)) if number not in found]
    found |= steps.do(rest, lambda _: None)
    return found, None, len(rest)


_EASY = ("picture", "utility")
"""Steps of an audit that attack nothing."""


def _clearly_useless(served: list[Score], policy: Policy) -> str | None:
    """The limit on utility that is missed by the favourable end of its interval; None if there is none."""
    limits = tuple(one for one in policy.thresholds if one.what in UTILITY_METRICS)
    if not served or not limits:
        return None
    scores = {
        "utility": [score.to_json() for score in served],
        "worst": {},
        "attacks": [],
        "skipped": [],
        "guarantee": _NO_PROMISE,
    }
    useful = replace(policy, thresholds=limits, require=None, epsilon=None, delta=None, unit=None)
    checks = [check for check in checks_at(scores, useful, "favourable") if about_utility(check)]
    missed = next((check for check in checks if check.outcome == "failed"), None)
    return None if missed is None else f"{missed.asked}: {missed.because}"


_NO_PROMISE = {"kind": "empirical", "statement": ""}
