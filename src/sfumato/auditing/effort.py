"""How hard to measure: everything here costs time and changes no mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from sfumato.core.errors import unknown

Geometry = Literal["pca", "umap"]


@dataclass(frozen=True)
class Effort:
    """Epochs, width and least number of steps of the inverse networks, and how often they query a randomised
    mechanism anew (0: for every epoch); epochs of the fresh classifier; candidates; further releases of the same
    victims, where there are keys; how the picture of the payloads is made; whether the attacks of one threat are all
    that is run, or none at all.

    For synthetic releases: records whose membership is in question; learning runs with a canary, transcripts drawn in
    each world of each, and the questions after which such a run is cut short; canaries of the single run with many;
    students by name (none: those of the kind of data), and the width of the CNN among them."""

    attack_epochs: int = 6
    attack_width: int = 32
    attack_steps: int = 500
    attack_renewals: int = 0
    task_epochs: int = 4
    candidates: int = 1000
    repeats: int = 7
    geometry: Geometry = "pca"
    threats: Literal["all", "none", "attribute", "reconstruction", "list-reconstruction"] = "all"
    suspects: int = 2000
    canary_runs: int = 1
    draws: int = 400_000
    questions: int = 400
    canaries: int = 100
    students: tuple[str, ...] = ()
    student_width: int = 16

    def __post_init__(self) -> None:
        object.__setattr__(self, "students", tuple(self.students))  # JSON gives back a list


SMOKE = Effort(
    attack_epochs=2,
    attack_width=16,
    attack_steps=60,
    task_epochs=2,
    candidates=100,
    repeats=3,
    suspects=1000,
    draws=20_000,
    questions=50,
    canaries=30,
    student_width=8,
)
CPU = Effort()
FULL = Effort(
    attack_epochs=30,
    attack_width=64,
    task_epochs=10,
    repeats=15,
    suspects=10_000,
    canary_runs=5,
    draws=1_000_000,
    questions=5000,
    canaries=300,
    student_width=32,
)

_NAMED = {"smoke": SMOKE, "cpu": CPU, "full": FULL}


def effort_named(name: str, geometry: str = "pca", students: Sequence[str] = ()) -> Effort:
    """The effort of that name, with that geometry and these students."""
    if name not in _NAMED:
        raise unknown("effort", name, _NAMED)
    for known in get_args(Geometry):
        if known == geometry:
            return replace(_NAMED[name], geometry=known, students=tuple(students))
    raise unknown("geometry", geometry, get_args(Geometry))
