"""Data sources, splits and checks. Importing this package is cheap: readers are imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sfumato.data.registry import REGISTRY, Entry, entry, names

if TYPE_CHECKING:
    from sfumato.data.checks import check as check
    from sfumato.data.encoding.tables import decode_table as decode_table
    from sfumato.data.file_errors import Problem as Problem
    from sfumato.data.loading import domain_draft as domain_draft
    from sfumato.data.loading import load as load
    from sfumato.data.splits import load_splits as load_splits
    from sfumato.data.splits import split as split
    from sfumato.data.streaming import stream as stream
    from sfumato.data.summary import describe as describe
    from sfumato.data.summary import listing as listing

_HOME = {
    "Problem": "file_errors",
    "check": "checks",
    "decode_table": "encoding.tables",
    "describe": "summary",
    "domain_draft": "loading",
    "listing": "summary",
    "load": "loading",
    "load_splits": "splits",
    "split": "splits",
    "stream": "streaming",
}

__all__ = [
    "REGISTRY", "Entry", "Problem", "check", "decode_table", "describe", "domain_draft", "entry", "listing", "load",
    "load_splits", "names", "split", "stream",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato.data' has no attribute '{name}'")
    value = getattr(import_module(f"sfumato.data.{_HOME[name]}"), name)
    globals()[name] = value
    return value
