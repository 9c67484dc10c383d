"""The final judgement: the winner attacked by people, and on people, that the search never saw."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.auditing import Effort
from sfumato.auditing.result import Say
from sfumato.core.errors import DataError
from sfumato.core.run_folder import RunFolder, read_json
from sfumato.mechanisms import load_mechanism, mechanism_class
from sfumato.workflow.auditing import audit_run
from sfumato.workflow.fitting import SPLITS, splits_of
from sfumato.workflow.protect.goal import Goal
from sfumato.workflow.sealed_splits import same_part, sealed

_KEPT = ("id", "limit", "domain")


def moved_to_judgement(candidate: Path, winner: Path) -> Path:
    """The candidate's mechanism in a run folder of its own, whose attackers and victims are those of the judgement."""
    old = RunFolder.open(candidate)
    config = old.config()
    config = {**config, "data": {**config["data"], "held_out": "final"}}
    splits = splits_of(config)
    if not same_part(old.read_json(SPLITS), "owner", splits.owner, candidate):
        raise DataError(f"the data have changed since {candidate} was fitted: restore them, or choose another --out.")
    run = RunFolder.create(winner, config, resume=True)
    if not run.done:
        if not (winner / SPLITS).exists():
            run.write_json(SPLITS, sealed(splits, counted=True))
        load_mechanism(candidate).save(winner)
        run.finish()
    return winner


def judged(winner: Path, effort: Effort, say: Say) -> Mapping[str, Any]:
    """The audit of the winner, by every threat that ``effort`` tries; one that was done is not done again."""
    if (winner / "scores.json").is_file():
        scores: Mapping[str, Any] = read_json(winner / "scores.json")
        return scores
    return audit_run(winner, effort=effort, again=True, say=say)


def fit_command(mechanism: str, params: Mapping[str, Any], goal: Goal) -> str:
    """The exact ``sfumato fit`` that makes the same mechanism again, from the same records of the owner."""
    data = goal.data
    words = ["sfumato", "fit", mechanism, "--data", str(data["source"])]
    for option in ("x", "utility", "private"):
        for value in data.get(option) or ():
            words += [f"--{option}", str(value)]
    for option in _KEPT:
        if data.get(option) is not None:
            words += [f"--{option}", str(data[option])]
    if data.get("shares"):
        words += ["--shares", ",".join(f"{one:g}" for one in data["shares"])]
    usual = mechanism_class(mechanism).parameters()
    for name, value in params.items():
        if value != usual[name]:
            words += ["--set", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    return shlex.join([*words, "--seed", str(goal.seed)])
