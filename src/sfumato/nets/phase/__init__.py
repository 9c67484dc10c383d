"""Networks that commute with rotations of their components (complex-valued networks for privacy, §3.1)."""

from __future__ import annotations

from sfumato.nets.phase.convert import NotEquivariant, Problem, to_phase, validate
from sfumato.nets.phase.layers import (
    Each,
    PhaseActivation,
    PhaseActivationPool,
    PhaseDropout,
    PhaseMaxPool,
    PhaseNorm,
    PhaseNormActivation,
    rotate,
)
from sfumato.nets.phase.networks import NETWORKS, Blueprint
from sfumato.nets.phase.split import Parts, SplitError, split

__all__ = [
    "NETWORKS",
    "Blueprint",
    "Each",
    "NotEquivariant",
    "Parts",
    "PhaseActivation",
    "PhaseActivationPool",
    "PhaseDropout",
    "PhaseMaxPool",
    "PhaseNorm",
    "PhaseNormActivation",
    "Problem",
    "SplitError",
    "rotate",
    "split",
    "to_phase",
    "validate",
]
