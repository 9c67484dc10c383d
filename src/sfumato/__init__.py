"""sfumato: let other people use your data without being able to see it.

Importing the package is light; the names below load their rooms when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from sfumato.auditing import audit as audit
    from sfumato.core.dataset import Dataset as Dataset
    from sfumato.core.dataset import Splits as Splits
    from sfumato.data import load as load
    from sfumato.data import load_splits as load_splits
    from sfumato.data import split as split
    from sfumato.mechanisms.ars.mechanism import ARS as ARS
    from sfumato.mechanisms.filter.mechanism import Filter as Filter
    from sfumato.mechanisms.filter.mechanism import LinearFilter as LinearFilter
    from sfumato.mechanisms.filter.vae import VAE as VAE
    from sfumato.mechanisms.phase import to_phase as to_phase
    from sfumato.mechanisms.phase.mechanism import Phase as Phase
    from sfumato.mechanisms.ran.mechanism import RAN as RAN
    from sfumato.mechanisms.synth.mechanism import Synth as Synth
    from sfumato.workflow import audit_release as audit_release
    from sfumato.workflow import load_run as load_run
    from sfumato.workflow import sweep as sweep
    from sfumato.workflow.protect.from_python import protect as protect

_HOME = {
    "ARS": "mechanisms.ars.mechanism",
    "Dataset": "core.dataset",
    "Filter": "mechanisms.filter.mechanism",
    "LinearFilter": "mechanisms.filter.mechanism",
    "Phase": "mechanisms.phase.mechanism",
    "RAN": "mechanisms.ran.mechanism",
    "Splits": "core.dataset",
    "Synth": "mechanisms.synth.mechanism",
    "VAE": "mechanisms.filter.vae",
    "audit": "auditing",
    "audit_release": "workflow",
    "load": "data",
    "load_run": "workflow",
    "load_splits": "data",
    "protect": "workflow.protect.from_python",
    "split": "data",
    "sweep": "workflow",
    "to_phase": "mechanisms.phase",
}

__all__ = [  # noqa: RUF022 — ``_HOME`` in order, which a type checker cannot read
    "ARS", "Dataset", "Filter", "LinearFilter", "Phase", "RAN", "Splits", "Synth", "VAE", "__version__", "audit",
    "audit_release", "load", "load_run", "load_splits", "protect", "split", "sweep", "to_phase",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato' has no attribute '{name}'")
    value = getattr(import_module(f"sfumato.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
