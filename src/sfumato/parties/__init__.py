"""Several organisations (parties) share representations through Flower and learn from them together.

Importing this package is cheap: Flower is imported when a run starts. ``pip install 'sfumato[parties]'`` installs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.parties.app_files import lay_app as lay_app
    from sfumato.parties.partition import split_parties as split_parties
    from sfumato.parties.results import FedResult as FedResult
    from sfumato.parties.results import ShareResult as ShareResult
    from sfumato.parties.simulation import fedavg as fedavg
    from sfumato.parties.simulation import simulate as simulate

_HOME = {
    "FedResult": "results",
    "ShareResult": "results",
    "fedavg": "simulation",
    "lay_app": "app_files",
    "simulate": "simulation",
    "split_parties": "partition",
}

__all__ = ["FedResult", "ShareResult", "fedavg", "lay_app", "simulate", "split_parties"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato.parties' has no attribute '{name}'")
    value = getattr(import_module(f"sfumato.parties.{_HOME[name]}"), name)
    globals()[name] = value
    return value
