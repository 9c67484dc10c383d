"""The plugin keeps every promise of a mechanism and of an attack: the suites come with sfumato."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.mechanisms.base import Mechanism
from sfumato.testing import AttackConformance, MechanismConformance, parity_digits
from sfumato_shuffle.attack import MatchPixels
from sfumato_shuffle.mechanism import Shuffle


class TestShuffle(MechanismConformance):
    @pytest.fixture
    def make(self) -> type[Shuffle]:
        return Shuffle

    def test_release_holds_the_same_pixels_in_another_order(self) -> None:
        victim = parity_digits().victim
        payload = Shuffle().fit(parity_digits().owner).release(victim, seed=1).payload
        flat = victim.x.reshape(len(victim), -1)
        assert np.array_equal(np.sort(payload, axis=1), np.sort(flat, axis=1)) and not np.array_equal(payload, flat)


class TestMatchPixels(AttackConformance):
    @pytest.fixture
    def attack(self) -> MatchPixels:
        return MatchPixels()

    @pytest.fixture
    def undefended(self) -> Mechanism:
        return Shuffle().fit(parity_digits().owner)
