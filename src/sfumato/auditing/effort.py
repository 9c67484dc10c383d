"""How hard to measure: everything here costs time and changes no mechanism."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.core.errors import unknown


@dataclass(frozen=True)
class Effort:
    """Epochs, width and least number of steps of the inverse networks; epochs of the fresh classifier; candidates."""

    attack_epochs: int = 6
    attack_width: int = 32
    attack_steps: int = 500
    task_epochs: int = 4
    candidates: int = 1000


SMOKE = Effort(attack_epochs=2, attack_width=16, attack_steps=60, task_epochs=2, candidates=100)
CPU = Effort()
FULL = Effort(attack_epochs=30, attack_width=64, task_epochs=10)

_NAMED = {"smoke": SMOKE, "cpu": CPU, "full": FULL}


def effort_named(name: str) -> Effort:
    """The effort of that name."""
    if name not in _NAMED:
        raise unknown("effort", name, _NAMED)
    return _NAMED[name]
