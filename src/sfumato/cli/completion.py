"""What a shell offers after Tab: names of mechanisms and data sets. Files are the shell's own business."""

from __future__ import annotations


def mechanisms(begun: str) -> list[str]:
    """Names of mechanisms that begin so."""
    from sfumato.mechanisms import names

    return [name for name in names() if name.startswith(begun)]


def data_sets(begun: str) -> list[str]:
    """Names of data sets that begin so."""
    from sfumato.data import names

    return [name for name in names() if name.startswith(begun)]
