"""What an audit found, and the undefended figures that several audits share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sfumato.core.dataset import FloatArray
from sfumato.core.guarantee import Guarantee
from sfumato.core.score import Score, worst_by_threat

Say = Callable[[str], None]
GALLERY = 8
"""Records that a report shows."""


@dataclass(frozen=True)
class Audit:
    """What was measured, and what a report shows of it.

    ``confusion`` holds, for each private label, what the worst attribute attack took for what: its name, the classes,
    and a matrix with the truth in rows and the guess in columns. ``information`` is an estimate and ranks nothing.
    ``wrong_key`` is the accuracy that other keys than the right one give, {} for a mechanism without keys.
    """

    mechanism: str
    data: str
    guarantee: Guarantee
    utility: tuple[Score, ...]
    attacks: tuple[Score, ...]
    skipped: tuple[tuple[str, str], ...]
    confusion: dict[str, dict[str, Any]]
    information: tuple[Score, ...]
    wrong_key: dict[str, Any]
    gallery: dict[str, FloatArray] = field(repr=False)
    features: dict[str, Any] = field(repr=False)

    @property
    def worst(self) -> dict[str, Score]:
        """The worst score of each threat: the one that counts."""
        return worst_by_threat(self.attacks)

    @property
    def accuracy(self) -> Score:
        """The mechanism's own accuracy where it has a classifier, else the fresh classifier's."""
        return next(score for score in self.utility if score.primary)

    def to_json(self) -> dict[str, Any]:
        return {
            "mechanism": self.mechanism,
            "data": self.data,
            "guarantee": self.guarantee.to_json(),
            "utility": [score.to_json() for score in self.utility],
            "attacks": [score.to_json() for score in self.attacks],
            "worst": {threat: score.to_json() for threat, score in self.worst.items()},
            "skipped": [{"attack": attack, "reason": reason} for attack, reason in self.skipped],
            "confusion": self.confusion,
            "information": [score.to_json() for score in self.information],
            "wrong_key": self.wrong_key,
        }


class Controls:
    """What each attack and task gets from the raw records; measured once for a data set and kept."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, float]] = {}

    def get(self, key: str, measure: Callable[[], dict[str, float]]) -> dict[str, float]:
        if key not in self._values:
            self._values[key] = measure()
        return self._values[key]
