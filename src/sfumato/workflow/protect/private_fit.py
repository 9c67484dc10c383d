"""Private candidates: one fit, with settings that are fixed before anybody looks at the records.

Every fit spends ε on the same people, and to choose among several by what came of them spends more than the chosen one
promises. So there is one, at the ε of the policy, and nothing is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sfumato.mechanisms.capabilities import SpendsByFit
from sfumato.workflow.fitting import fit_run, resolve
from sfumato.workflow.processes import Say
from sfumato.workflow.protect.candidate_ways import Candidate, Way
from sfumato.workflow.protect.goal import Goal


@dataclass(frozen=True)
class PrivateFit:
    """The only candidate, and what it spends."""

    candidate: Candidate
    epsilon: float
    delta: float

    @property
    def plan(self) -> list[str]:
        return [
            f"one private fit of {self.candidate.way.mechanism} spends ε = {self.epsilon:g}, δ = {self.delta:g}, "
            "whatever comes of it",
            "its settings are fixed before the records are looked at: nothing is chosen among private candidates",
        ]

    @property
    def tuning(self) -> str:
        return "None: one private fit, with settings that were fixed before the records were looked at."


def private_fit(way: Way, goal: Goal) -> PrivateFit:
    """The fit at the ε and δ of the policy, or at the mechanism's own where it sets none."""
    limits = {"epsilon": goal.policy.epsilon, "delta": goal.policy.delta}
    knobs = {name: value for name, value in limits.items() if value is not None}
    fresh = way.fresh.set_params(**knobs)
    assert isinstance(fresh, SpendsByFit)  # whoever calls has asked
    return PrivateFit(Candidate(way, {**way.settings[0], **knobs}), *fresh.spends())


def fitted_once(fit: PrivateFit, goal: Goal, folder: Path, ledger: Path | None, say: Say) -> Path:
    """The run folder of the fit; one that is there already costs nothing more."""
    given = {name: value for name, value in goal.data.items() if value is not None}
    config = resolve(fit.candidate.way.mechanism, given, fit.candidate.params, seed=goal.seed)
    fit_run(config, folder, resume=True, ledger=ledger, warn=say)
    return folder
