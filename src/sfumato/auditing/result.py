"""What an audit found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sfumato.auditing.audit_frame import frame, leakage_plot, score_rows, worst_table
from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.guarantee import Guarantee
from sfumato.core.score import Score, worst_by_threat
from sfumato.core.threats import described
from sfumato.core.traits import Traits

Say = Callable[[str], None]
GALLERY = 8
"""Records that a report shows."""


@dataclass(frozen=True)
class Audit:
    """What was measured, and what a report shows of it.

    ``titles`` says, for each attack, what a report calls it and what it does. ``confusion`` is, for each private
    label, what the worst attribute attack took for what: its name, the classes, and a matrix with the truth in rows
    and the guess in columns. ``information`` is an estimate and ranks nothing. ``wrong_key`` is the accuracy that
    other keys than the right one give, by label and on average, {} for a mechanism without keys. ``repeated`` are
    attacks on the mean of several releases of the same records: they rank nothing, for whoever releases once.
    ``fairness`` is how the groups of each private label fare with what the classifiers of ``utility`` say; it ranks
    nothing either. ``answers`` are the classes that each attribute attack took the victims for, under
    ``attack|label|answer``. ``drawn`` says of each part that is too large for memory how many of its records were
    drawn for the audit, and how many it has. ``exposure`` says for each threat who is worst off, see
    ``auditing.exposure``. ``notes`` are what has to be said about files that somebody else made.
    """

    mechanism: str
    traits: Traits
    data: str
    guarantee: Guarantee
    utility: tuple[Score, ...]
    attacks: tuple[Score, ...]
    skipped: tuple[tuple[str, str], ...]
    titles: dict[str, tuple[str, str]]
    confusion: dict[str, dict[str, Any]]
    information: tuple[Score, ...]
    wrong_key: dict[str, Any]
    gallery: dict[str, FloatArray] = field(repr=False)
    features: dict[str, Any] = field(repr=False)
    repeated: tuple[Score, ...] = ()
    fairness: tuple[Score, ...] = ()
    answers: dict[str, IntArray] = field(default_factory=dict, repr=False)
    exposure: dict[str, Any] = field(default_factory=dict, repr=False)
    drawn: dict[str, tuple[int, int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def worst(self) -> dict[str, Score]:
        """The worst score of each threat: the one that counts."""
        return worst_by_threat(self.attacks)

    @property
    def accuracy(self) -> Score:
        """The mechanism's own accuracy where it has a classifier, else the fresh classifier's."""
        return next(score for score in self.utility if score.primary)

    def to_frame(self) -> Any:
        """Every figure as a row of a pandas DataFrame: kind, attack, threat, label, value, interval, baseline, control,
        leakage; ``worst`` marks the one of each threat that counts."""
        groups = {"utility": self.utility, "attack": self.attacks, "repeated": self.repeated, "fairness": self.fairness}
        return frame(score_rows(groups, self.worst.values()))

    def plot(self) -> Any:
        """The leakage of each threat's worst attack with its interval, as axes of matplotlib."""
        return leakage_plot(f"{self.mechanism} on {self.data}", self.worst)

    def _repr_html_(self) -> str:
        served = [score for score in self.utility if score.primary]
        return worst_table(f"{self.mechanism} on {self.data}: {self.guarantee.kind}", self.worst, served)

    def to_json(self) -> dict[str, Any]:
        return {
            "mechanism": self.mechanism,
            "traits": self.traits.to_json(),
            "data": self.data,
            "guarantee": self.guarantee.to_json(),
            "utility": [score.to_json() for score in self.utility],
            "fairness": [score.to_json() for score in self.fairness],
            "attacks": [score.to_json() for score in self.attacks],
            "repeated": [score.to_json() for score in self.repeated],
            "worst": {threat: score.to_json() for threat, score in self.worst.items()},
            "skipped": [{"attack": attack, "reason": reason} for attack, reason in self.skipped],
            "titles": {attack: list(words) for attack, words in self.titles.items()},
            "confusion": self.confusion,
            "information": [score.to_json() for score in self.information],
            "wrong_key": self.wrong_key,
            "exposure": self.exposure,
            "notes": list(self.notes),
            "drawn": {part: list(counts) for part, counts in self.drawn.items()},
            "threats": described(s.threat for s in (*self.utility, *self.fairness, *self.attacks, *self.information)),
        }
