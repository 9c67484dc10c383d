"""sfumato: let other people use your data without being able to see it.

Importing the package is light; the names below load their rooms when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "load": "sfumato.data",
    "load_splits": "sfumato.data",
    "RAN": "sfumato.mechanisms.ran.mechanism",
    "VAE": "sfumato.mechanisms.filter.vae",
    "Filter": "sfumato.mechanisms.filter.mechanism",
    "LinearFilter": "sfumato.mechanisms.filter.mechanism",
    "Phase": "sfumato.mechanisms.phase.mechanism",
    "Synth": "sfumato.mechanisms.synth.mechanism",
    "ARS": "sfumato.mechanisms.ars.mechanism",
    "to_phase": "sfumato.mechanisms.phase",
    "audit": "sfumato.auditing",
    "sweep": "sfumato.workflow",
}

if TYPE_CHECKING:
    from sfumato.auditing import audit as audit
    from sfumato.data import load as load
    from sfumato.data import load_splits as load_splits
    from sfumato.mechanisms.ars.mechanism import ARS as ARS
    from sfumato.mechanisms.filter.mechanism import Filter as Filter
    from sfumato.mechanisms.filter.mechanism import LinearFilter as LinearFilter
    from sfumato.mechanisms.filter.vae import VAE as VAE
    from sfumato.mechanisms.phase import to_phase as to_phase
    from sfumato.mechanisms.phase.mechanism import Phase as Phase
    from sfumato.mechanisms.ran.mechanism import RAN as RAN
    from sfumato.mechanisms.synth.mechanism import Synth as Synth
    from sfumato.workflow import sweep as sweep

__all__ = [
    "ARS",
    "RAN",
    "VAE",
    "Filter",
    "LinearFilter",
    "Phase",
    "Synth",
    "__version__",
    "audit",
    "load",
    "load_splits",
    "sweep",
    "to_phase",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato' has no attribute '{name}'")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value
