"""A mechanism or an attack of the tests, as if a plugin had brought it."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from sfumato.core.plugins import plugins


def plug(monkeypatch: pytest.MonkeyPatch, room: str, name: str, place: str) -> None:
    """Let ``room`` ("mechanisms" or "attacks") find ``place`` ("module:Class") under ``name``."""
    group = f"sfumato.{room}"
    points = {**plugins(group), name: EntryPoint(name, place, group)}
    monkeypatch.setattr(f"sfumato.{room}.registry.plugins", lambda _: points)
