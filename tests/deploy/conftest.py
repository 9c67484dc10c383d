"""Bundles of small fitted mechanisms, each made once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.made_records import made_records

from sfumato.core.dataset import Dataset
from sfumato.deploy.exporting import Exported, export
from sfumato.mechanisms import mechanism_class
from sfumato.mechanisms.base import Mechanism

FEW = {"epochs": 2, "steps": 60, "batch": 64}


@dataclass(frozen=True)
class Made:
    """A fitted mechanism, the records it was fitted to, and its bundle."""

    mechanism: Mechanism
    data: Dataset
    exported: Exported

    @property
    def folder(self) -> Path:
        return self.exported.folder


class Bundles(dict[tuple[str, ...], Made]):
    """``bundles["phase", "image", "d=3"]``: fitted and exported on the first use."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __missing__(self, key: tuple[str, ...]) -> Made:
        name, kind, *settings = key
        cls, data = mechanism_class(name), made_records(kind)
        wanted: dict[str, Any] = {**FEW}
        for setting in settings:
            parameter, _, value = setting.partition("=")
            wanted[parameter] = int(value) if value.isdigit() else value
        mechanism = cls(**{p: value for p, value in wanted.items() if p in cls.parameters()})
        mechanism.fit(data, warn=lambda _: None)
        out = self._folder / "-".join(key).replace("=", "_").replace(".", "_")
        self[key] = Made(mechanism, data, export(mechanism, out, name=name, real=data))
        return self[key]


@pytest.fixture(scope="session")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Bundles:
    return Bundles(tmp_path_factory.mktemp("bundles"))
