"""Several machines: fits, audits and releases spread over a Ray cluster (``pip install 'sfumato[scale]'``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.scale.bulk_release import release_over as release_over
    from sfumato.scale.ray_cluster import RayCluster as RayCluster
    from sfumato.scale.ray_cluster import cluster as cluster

_HOME = {"RayCluster": "ray_cluster", "cluster": "ray_cluster", "release_over": "bulk_release"}
__all__ = ["RayCluster", "cluster", "release_over"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module 'sfumato.scale' has no attribute '{name}'")
    return getattr(import_module(f"sfumato.scale.{_HOME[name]}"), name)
