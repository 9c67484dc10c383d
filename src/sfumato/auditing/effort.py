"""How hard to measure: everything here costs time and changes no mechanism."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from sfumato.core.errors import unknown

Geometry = Literal["pca", "umap"]


@dataclass(frozen=True)
class Effort:
    """Epochs, width and least number of steps of the inverse networks; epochs of the fresh classifier; candidates;
    further releases of the same victims, where there are keys; how the picture of the payloads is made; whether the
    attacks of one threat are all that is run."""

    attack_epochs: int = 6
    attack_width: int = 32
    attack_steps: int = 500
    task_epochs: int = 4
    candidates: int = 1000
    repeats: int = 7
    geometry: Geometry = "pca"
    threats: Literal["all", "attribute", "list-reconstruction"] = "all"


SMOKE = Effort(attack_epochs=2, attack_width=16, attack_steps=60, task_epochs=2, candidates=100, repeats=3)
CPU = Effort()
FULL = Effort(attack_epochs=30, attack_width=64, task_epochs=10, repeats=15)

_NAMED = {"smoke": SMOKE, "cpu": CPU, "full": FULL}


def effort_named(name: str, geometry: str = "pca") -> Effort:
    """The effort of that name, with that geometry."""
    if name not in _NAMED:
        raise unknown("effort", name, _NAMED)
    for known in get_args(Geometry):
        if known == geometry:
            return replace(_NAMED[name], geometry=known)
    raise unknown("geometry", geometry, get_args(Geometry))
