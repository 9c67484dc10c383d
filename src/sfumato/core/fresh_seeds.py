"""Seeds for repeated calls that depend on who calls and how often, never on who called before.

So attacks find the same answers in whatever order they run, and in whatever process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from weakref import WeakKeyDictionary

from sfumato.core.randomness import derive_seed


class FreshSeeds:
    """Another seed at each call, counted anew for each asker."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __call__(self) -> int:
        name, calls = _asker.get()
        calls[self] = calls.get(self, 0) + 1
        return derive_seed(self._seed, name, calls[self])


_Asker = tuple[str, WeakKeyDictionary[FreshSeeds, int]]
_asker: ContextVar[_Asker] = ContextVar("asker", default=("", WeakKeyDictionary()))


@contextmanager
def asking(name: str) -> Iterator[None]:
    """Inside, somebody of that name calls, for the first time."""
    token = _asker.set((name, WeakKeyDictionary()))
    try:
        yield
    finally:
        _asker.reset(token)
