"""What an attack gets from people who were in the data, beyond what it gets from people who were not.

What a release says about everybody alike is what it is for, so an attack that is right about held-out people has learnt
about the population. The figure is the excess: its rate for members minus its rate for strangers. Which are which only
the scorer knows. The interval covers as many comparisons as there are attacks on the question, ``among``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sfumato.attacks.base import Attack, Guess, Measured
from sfumato.core.coded_columns import CodedColumn
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.intervals import CONFIDENCE, difference_interval, mean_interval, share_interval
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.metrics import Values
from sfumato.core.release import Release

EXCESS, RATE, HELD_OUT = "excess", "rate", "rate-held-out"


class HeldOutAttack(Attack):
    """The guess is about each of ``knowledge.candidates``; what comes of it is a value in [0, 1] each."""

    known_baseline: ClassVar[Mapping[str, float]] = {EXCESS: 0.0}
    with_auxiliary: ClassVar[bool] = True
    """Whether it needs records of the attacker's own; without, every held-out person is a stranger."""
    version: ClassVar[int] = 2
    among: int = 1

    def obstacle(self, knowledge: Knowledge) -> str | None:
        if knowledge.candidates is None:
            return "needs candidates"
        return None if knowledge.columns else "needs columns"

    def expected(self, release: Release, knowledge: Knowledge) -> int:
        return len(candidates_of(knowledge))

    @property
    def confidence(self) -> float:
        return 1.0 - (1.0 - CONFIDENCE) / self.among

    @abstractmethod
    def came_true(self, guess: Guess, truth: Dataset) -> Values:
        """What came of the guess about each candidate, in [0, 1]; NaN where it was not asked."""

    def of_each(self, guess: Guess, truth: Truth) -> dict[str | None, Values]:
        """By target what came of the guess about each candidate, NaN where it was not asked; {} if about nobody."""
        return {None: self.came_true(guess, truth.open())}

    def trivial(self, knowledge: Knowledge, n: int) -> FloatArray:
        return np.zeros(n, dtype=np.float32)

    def measure(self, guess: Guess, truth: Truth) -> list[Measured]:
        return held_out_scores(self.came_true(guess, truth.open()), truth.members() == 1, self.confidence)


def held_out_scores(
    values: Values,
    members: npt.NDArray[np.bool_],
    confidence: float = CONFIDENCE,
    *,
    target: str | None = None,
    primary: bool = True,
    note: str = "",
) -> list[Measured]:
    """The excess of members over strangers, and both rates."""
    asked = ~np.isnan(values)
    inside, outside = values[members & asked], values[~members & asked]
    if not len(inside) or not len(outside):
        return _nothing(target, primary, "nobody could be asked")
    excess = float(inside.mean() - outside.mean())
    rates = [(RATE, inside), (HELD_OUT, outside)]
    return [
        Measured(
            EXCESS,
            "lower",
            excess,
            difference_interval(inside, outside, confidence),
            (-1.0, 1.0),
            primary=primary,
            target=target,
            note=note,
        ),
        *(
            Measured(
                name,
                "lower",
                float(found.mean()),
                _rate_interval(found),
                (0.0, 1.0),
                target=target,
                each=found if name == RATE else None,
            )
            for name, found in rates
        ),
    ]


def candidates_of(knowledge: Knowledge) -> Dataset:
    assert knowledge.candidates is not None  # obstacle() has seen to it
    return knowledge.candidates


def places(columns: Sequence[CodedColumn]) -> list[int]:
    """The columns of the file: without those that say where another is missing."""
    return [place for place, column in enumerate(columns) if not column.companion]


def _rate_interval(found: Values) -> tuple[float, float]:
    whole = bool(np.isin(found, (0.0, 1.0)).all())
    return share_interval(found) if whole else mean_interval(found, limits=(0.0, 1.0))


def _nothing(target: str | None, primary: bool, note: str) -> list[Measured]:
    wide = Measured(EXCESS, "lower", 0.0, (-1.0, 1.0), (-1.0, 1.0), primary=primary, target=target, note=note)
    return [wide, *(Measured(name, "lower", 0.0, (0.0, 1.0), (0.0, 1.0), target=target) for name in (RATE, HELD_OUT))]
