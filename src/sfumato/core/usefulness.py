"""Whether a release serves anybody: *useless* is a verdict, not a figure to be read between the lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sfumato.core.score import Score


@dataclass(frozen=True)
class Served:
    """One utility label: whether some reader does better than guessing, interval included, and the one that comes
    nearest to it or goes furthest."""

    label: str
    useful: bool
    best: Score

    def __str__(self) -> str:
        low, high = self.best.ci
        figure = f"{self.best.metric} {self.best.value:.3g} [{low:.3g}, {high:.3g}], guessing {self.best.baseline:.3g}"
        if self.useful:
            return f"{self.best.attack} reads '{self.label}' better than guessing ({figure})"
        return (
            f"USELESS for '{self.label}': no reader does better than guessing, within the interval "
            f"({self.best.attack}: {figure})"
        )


def served(utility: Iterable[Score], *, students: bool = False) -> tuple[Served, ...]:
    """What became of every utility label that was read, by any metric that has a guess to compare with.

    A frequent class can be guessed as often as it is right, so that a reader may win by another metric than accuracy.
    Readers without a ranking score read what does not leave; but ``students`` of synthetic records all read what does.
    """
    every = tuple(utility)
    readers = {score.attack for score in every if score.primary or students}
    found = [s for s in every if s.attack in readers and s.target is not None and s.baseline is not None]
    labels = dict.fromkeys(str(score.target) for score in found)
    return tuple(_served(label, [score for score in found if score.target == label]) for label in labels)


def useless(utility: Iterable[Score], *, students: bool = False) -> tuple[str, ...]:
    """A sentence for each label that the release does not serve."""
    return tuple(str(one) for one in served(utility, students=students) if not one.useful)


def _served(label: str, scores: list[Score]) -> Served:
    wins = [score for score in scores if _margin(score) > 0.0]
    return Served(label, bool(wins), max(wins or scores, key=lambda score: (score.primary, _margin(score))))


def _margin(score: Score) -> float:
    """How far the interval is from the guess, on its better side for whoever reads."""
    assert score.baseline is not None  # those without one are left out
    return score.ci[0] - score.baseline if score.better_for_owner == "higher" else score.baseline - score.ci[1]
