"""Every mechanism and baseline keeps the promises of a mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfumato.mechanisms import mechanism_class, names
from sfumato.mechanisms.base import Mechanism
from sfumato.testing import MechanismConformance


class TestEveryMechanism(MechanismConformance):
    @pytest.fixture(params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in names()])
    def name(self, request: pytest.FixtureRequest) -> str:
        found: str = request.param
        return found

    @pytest.fixture
    def make(self, name: str) -> Callable[..., Mechanism]:
        cls = mechanism_class(name)
        few = {"epochs": 1, "steps": 50, "batch": 64}
        known = {key: value for key, value in few.items() if key in cls.parameters()}

        def make(**params: Any) -> Mechanism:
            return cls(**{**known, **params})

        return make

    @pytest.fixture
    def fitted(self, name: str, fitted: dict[str, Mechanism]) -> Mechanism:
        return fitted[name]

    def test_name_is_the_registered_one(self, name: str) -> None:
        assert mechanism_class(name).name == name
