"""`synth` with small methods of its own for every test in this folder."""

from __future__ import annotations

import pytest
import tiny_methods


@pytest.fixture
def tiny_methods_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """`synth` knows the methods tiny, stepwise and doubtful."""
    tiny_methods.register(monkeypatch)
