"""Packages that only some commands need: named in one sentence when they are missing, before any work is done."""

from __future__ import annotations

from importlib.util import find_spec

from sfumato.core.errors import UsageError


def require(extra: str, what: str, *modules: str) -> None:
    """Raise ``UsageError`` unless every module of the extra can be imported; ``what`` needs them."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise UsageError(f"{what} needs {' and '.join(missing)}: pip install 'sfumato[{extra}]'.")
