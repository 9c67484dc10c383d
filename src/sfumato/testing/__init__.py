"""Conformance suites for mechanisms and attacks, ours and those of plugins. They need pytest.

    class TestShuffle(MechanismConformance):
        @pytest.fixture
        def make(self):
            return Shuffle

Each suite names the fixtures that a subclass gives it.
"""

from sfumato.testing.attacks import TINY, AttackConformance, AuditStage, primary, wins
from sfumato.testing.mechanisms import MechanismConformance, numbered, parity_digits

__all__ = [
    "TINY",
    "AttackConformance",
    "AuditStage",
    "MechanismConformance",
    "numbered",
    "parity_digits",
    "primary",
    "wins",
]
