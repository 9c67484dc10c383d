"""What other packages add to sfumato: entry points in the groups ``sfumato.mechanisms`` and ``sfumato.attacks``."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from sfumato.core.errors import UsageError


@cache
def plugins(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name; nothing is imported."""
    return {point.name: point for point in entry_points(group=group)}


def load_plugin(point: EntryPoint, base: type) -> Any:
    """The class behind an entry point, which must be a ``base`` of that very name."""
    package = point.dist.name if point.dist is not None else point.value
    try:
        found = point.load()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"the plugin '{point.name}' of {package} cannot be imported ({reason}).") from error
    right = isinstance(found, type) and issubclass(found, base)
    named = getattr(found, "name", None)
    if not right or (isinstance(named, str) and named != point.name):
        raise UsageError(
            f"the plugin '{point.name}' of {package} is no {base.__name__} with name = '{point.name}': {point.value}."
        )
    return found
