"""Leakage: one number that a lay reader understands, beside the raw metric.

0 % is what a guesser gets who does not see the release, 100 % what the best attack of the same threat gets where
nothing is defended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sfumato.core.score import Score
from sfumato.core.threats import threat


def leakage(value: float, baseline: float, undefended: float) -> float:
    """(value − baseline) / (undefended − baseline), within [0, 1]."""
    return min(1.0, max(0.0, (value - baseline) / (undefended - baseline)))


def with_leakage(scores: Iterable[Score]) -> tuple[Score, ...]:
    """The scores with their leakage, where their threat can be graded and some undefended attack beats the guesser."""
    every = tuple(scores)
    best: dict[tuple[str, str | None, str], float] = {}
    for score in every:
        if score.control is not None:
            known = best.get(_question(score), score.control)
            worse = min if score.better_for_owner == "higher" else max
            best[_question(score)] = worse(known, score.control)
    return tuple(_graded(score, best.get(_question(score))) for score in every)


def _question(score: Score) -> tuple[str, str | None, str]:
    return score.threat, score.target, score.metric


def _graded(score: Score, undefended: float | None) -> Score:
    if not threat(score.threat).graded or score.baseline is None or undefended is None:
        return score
    gap = undefended - score.baseline
    if gap == 0 or (gap < 0) != (score.better_for_owner == "higher"):
        return score  # no attack wins where nothing is defended: a share of nothing says nothing
    found = [leakage(value, score.baseline, undefended) for value in (score.value, *score.ci)]
    return replace(score, leakage=found[0], leakage_ci=(min(found), max(found)))
