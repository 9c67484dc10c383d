"""What ``sfumato gate`` left in a run folder."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from sfumato.core.run_folder import read_json


@dataclass(frozen=True)
class GateCheck:
    """One limit of a policy: passed, failed, or not shown to hold (which fails as well), and why."""

    asked: str
    outcome: str
    because: str


@dataclass(frozen=True)
class GateFound:
    """What became of a gate that was put to these very scores."""

    passed: bool
    checks: tuple[GateCheck, ...]


def stored_gate(run: Path) -> GateFound | None:
    """The last gate of an audited run, if it is about the scores that are there now."""
    if not (run / "gate.json").is_file():
        return None
    found = read_json(run / "gate.json")
    if found["scores"] != hashlib.sha256((run / "scores.json").read_bytes()).hexdigest():
        return None
    checks = (GateCheck(str(one["asked"]), str(one["outcome"]), str(one["because"])) for one in found["checks"])
    return GateFound(bool(found["passed"]), tuple(checks))
