"""How hard to measure: everything here costs time and changes no mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from sfumato.core.errors import unknown

Geometry = Literal["pca", "umap"]
_MANY_PASSES = 100
"""Of a mechanism that counts no epochs."""


@dataclass(frozen=True)
class Effort:
    """How much time an audit takes.

    attack_epochs, attack_width, attack_steps   passes, width and minimum number of steps of the inverse networks; the
                     residual probe is 8 times as wide and takes 8 times the passes, and at least twice the steps
    attack_renewals  how often they query a randomised mechanism anew (0: for every epoch)
    inverted, inversion_steps, inversion_starts   victims whose records are looked for through the public encoder, the
                     steps of that search, and where it starts from
    shadows, shadow_records, shadow_passes   models like the mechanism that a membership attack fits (an even number),
                     the records of each, and the most passes over them that are affordable
    shadow_releases  releases by the maker of foreign rows, or by a synthetic mechanism, that a membership attack makes
                     (an even number)
    task_epochs      passes of the fresh classifier; 0: none, where the mechanism has a classifier of its own
    task_steps       minimum number of its steps
    candidates       records among which a released one is looked for
    repeats          further releases of the same victims
    averages         numbers of releases of the same victims that are averaged
    geometry         how the picture of the payloads is made
    threats          the only threats that are tried; None: all

    suspects         records whose membership is in question; half of them are the owner's
    predicates       by each way of singling people out

    For synthetic releases:
    canary_runs, draws, questions   learning runs with a canary, transcripts drawn in each world of each, and the
                     questions after which such a run is cut short
    canaries         in the single run with many
    students         by name; empty: those of the kind of data
    student_width    filters in the first layer of the CNN among them
    """

    attack_epochs: int = 6
    attack_width: int = 32
    attack_steps: int = 500
    attack_renewals: int = 0
    inverted: int = 128
    inversion_steps: int = 100
    inversion_starts: int = 2
    shadows: int = 4
    shadow_records: int = 1000
    shadow_passes: int = 10
    shadow_releases: int = 16
    task_epochs: int = 4
    task_steps: int = 300
    candidates: int = 1000
    repeats: int = 7
    averages: tuple[int, ...] = (4, 16)
    geometry: Geometry = "pca"
    threats: tuple[str, ...] | None = None
    suspects: int = 2000
    predicates: int = 1000
    canary_runs: int = 1
    draws: int = 400_000
    questions: int = 400
    canaries: int = 100
    students: tuple[str, ...] = ()
    student_width: int = 16

    def __post_init__(self) -> None:
        object.__setattr__(self, "students", tuple(self.students))  # JSON gives back lists
        object.__setattr__(self, "averages", tuple(self.averages))
        if self.threats is not None:
            object.__setattr__(self, "threats", tuple(self.threats))

    @property
    def light(self) -> bool:
        """Whether an audit is likely to be over before further processes have begun."""
        return self.attack_steps < CPU.attack_steps

    def refits(self, params: Mapping[str, Any]) -> bool:
        """Whether a mechanism with these hyper-parameters may be fitted again, for what is known of other fits."""
        return int(params.get("epochs", _MANY_PASSES)) <= self.shadow_passes

    def tries(self, threat: str) -> bool:
        """Whether attacks of this threat are run."""
        return self.threats is None or threat in self.threats


SMOKE = Effort(
    attack_epochs=2,
    attack_width=16,
    attack_steps=60,
    inverted=32,
    inversion_steps=40,
    inversion_starts=1,
    shadow_passes=0,
    shadow_releases=8,
    task_epochs=2,
    candidates=100,
    repeats=3,
    averages=(4,),
    suspects=1000,
    predicates=300,
    draws=20_000,
    questions=50,
    canaries=30,
    student_width=8,
)
CPU = Effort()
FULL = Effort(
    attack_epochs=30,
    attack_width=64,
    inverted=1000,
    inversion_steps=500,
    inversion_starts=4,
    shadows=16,
    shadow_records=5000,
    shadow_passes=100,
    shadow_releases=64,
    task_epochs=10,
    repeats=15,
    averages=(4, 16, 64),
    suspects=10_000,
    predicates=5000,
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
