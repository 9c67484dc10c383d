"""Networks that commute with rotations of their components (complex-valued networks for privacy, §3.1).

Importing the package is light: who stands with whom and which key is drawn is decided where there is no torch, too.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.mechanisms.phase.convert import LayerProblem as LayerProblem
    from sfumato.mechanisms.phase.convert import NotEquivariant as NotEquivariant
    from sfumato.mechanisms.phase.convert import to_phase as to_phase
    from sfumato.mechanisms.phase.convert import validate as validate
    from sfumato.mechanisms.phase.layers import Each as Each
    from sfumato.mechanisms.phase.layers import PhaseActivation as PhaseActivation
    from sfumato.mechanisms.phase.layers import PhaseActivationPool as PhaseActivationPool
    from sfumato.mechanisms.phase.layers import PhaseDropout as PhaseDropout
    from sfumato.mechanisms.phase.layers import PhaseMaxPool as PhaseMaxPool
    from sfumato.mechanisms.phase.layers import PhaseNorm as PhaseNorm
    from sfumato.mechanisms.phase.layers import PhaseNormActivation as PhaseNormActivation
    from sfumato.mechanisms.phase.layers import rotate as rotate
    from sfumato.mechanisms.phase.networks import NETWORKS as NETWORKS
    from sfumato.mechanisms.phase.networks import Blueprint as Blueprint
    from sfumato.mechanisms.phase.three_parts import Parts as Parts
    from sfumato.mechanisms.phase.three_parts import SplitError as SplitError
    from sfumato.mechanisms.phase.three_parts import split as split

_HOME = {
    "NETWORKS": "networks",
    "Blueprint": "networks",
    "Each": "layers",
    "LayerProblem": "convert",
    "NotEquivariant": "convert",
    "Parts": "three_parts",
    "PhaseActivation": "layers",
    "PhaseActivationPool": "layers",
    "PhaseDropout": "layers",
    "PhaseMaxPool": "layers",
    "PhaseNorm": "layers",
    "PhaseNormActivation": "layers",
    "SplitError": "three_parts",
    "rotate": "layers",
    "split": "three_parts",
    "to_phase": "convert",
    "validate": "convert",
}

__all__ = [
    "NETWORKS", "Blueprint", "Each", "LayerProblem", "NotEquivariant", "Parts", "PhaseActivation",
    "PhaseActivationPool", "PhaseDropout", "PhaseMaxPool", "PhaseNorm", "PhaseNormActivation", "SplitError", "rotate",
    "split", "to_phase", "validate",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato.mechanisms.phase' has no attribute '{name}'")
    value = getattr(import_module(f"sfumato.mechanisms.phase.{_HOME[name]}"), name)
    globals()[name] = value
    return value
