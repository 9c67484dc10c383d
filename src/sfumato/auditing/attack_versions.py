"""Which attacks this version of sfumato has, and in which versions: an audit by others is an audit of the past."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import walk_packages

import sfumato.attacks
from sfumato.attacks.base import Attack


@cache
def attack_versions() -> dict[str, int]:
    """The version of every attack class that comes with sfumato."""
    for module in walk_packages(sfumato.attacks.__path__, "sfumato.attacks."):
        import_module(module.name)
    found: dict[str, int] = {}
    waiting = Attack.__subclasses__()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith("sfumato.attacks."):
            found[kind.__qualname__] = kind.version
    return dict(sorted(found.items()))
