"""Networks that commute with rotations of their components (complex-valued networks for privacy, §3.1)."""

from __future__ import annotations

from sfumato.mechanisms.phase.convert import LayerProblem, NotEquivariant, to_phase, validate
from sfumato.mechanisms.phase.layers import (
    Each,
    PhaseActivation,
    PhaseActivationPool,
    PhaseDropout,
    PhaseMaxPool,
    PhaseNorm,
    PhaseNormActivation,
    rotate,
)
from sfumato.mechanisms.phase.networks import NETWORKS, Blueprint
from sfumato.mechanisms.phase.three_parts import Parts, SplitError, split

__all__ = [
    "NETWORKS",
    "Blueprint",
    "Each",
    "LayerProblem",
    "NotEquivariant",
    "Parts",
    "PhaseActivation",
    "PhaseActivationPool",
    "PhaseDropout",
    "PhaseMaxPool",
    "PhaseNorm",
    "PhaseNormActivation",
    "SplitError",
    "rotate",
    "split",
    "to_phase",
    "validate",
]
