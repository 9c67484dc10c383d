"""Leakage: one number that a lay reader understands, beside the raw metric.

0 % is what a guesser gets who does not see the release, 100 % what the best attack of the same threat gets where
nothing is defended, whichever attack won against the release. Where a threat has a second metric that counts (the area
under the ROC curve beside the advantage, which says nothing where one class is frequent), the larger share is the
leakage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from sfumato.core.score import Score
from sfumato.core.threats import threat

_Question = tuple[str, str | None, str]


def leakage(value: float, baseline: float, undefended: float) -> float:
    """(value − baseline) / (undefended − baseline), within [0, 1]."""
    return min(1.0, max(0.0, (value - baseline) / (undefended - baseline)))


def with_leakage(scores: Iterable[Score]) -> tuple[Score, ...]:
    """The scores with the best control of their threat, and with their leakage where that control beats the guesser."""
    every = tuple(scores)
    raw = _best(every, lambda score: score.control)
    encoder = _best(every, lambda score: score.encoder_control)
    graded = [_graded(s, raw.get(_question(s)), encoder.get(_question(s))) for s in every]
    return tuple(_by_worse_metric(score, graded) for score in graded)


def _best(scores: Sequence[Score], of: Callable[[Score], float | None]) -> dict[_Question, float]:
    """For each question the most that any attack gets."""
    best: dict[_Question, float] = {}
    for score in scores:
        value = of(score)
        if value is not None:
            most = min if score.better_for_owner == "higher" else max
            best[_question(score)] = most(best.get(_question(score), value), value)
    return best


def _question(score: Score) -> _Question:
    return score.threat, score.target, score.metric


def _graded(score: Score, undefended: float | None, encoder: float | None) -> Score:
    score = replace(score, control=undefended, own_control=score.control, encoder_control=encoder)
    if _gradable(score, encoder):
        score = replace(score, encoder_leakage=_shares(score, encoder)[0])
    if not _gradable(score, undefended):
        return score
    found = _shares(score, undefended)
    return replace(score, leakage=found[0], leakage_ci=(min(found), max(found)), leakage_by=score.metric)


def _gradable(score: Score, undefended: float | None) -> bool:
    """Whether some attack wins where nothing is defended; a share of nothing says nothing."""
    if not threat(score.threat).graded or score.baseline is None or undefended is None:
        return False
    gap = undefended - score.baseline
    return gap != 0 and (gap < 0) == (score.better_for_owner == "higher")


def _shares(score: Score, undefended: float | None) -> list[float]:
    assert score.baseline is not None and undefended is not None  # it is gradable
    return [leakage(value, score.baseline, undefended) for value in (score.value, *score.ci)]


def _by_worse_metric(score: Score, graded: Sequence[Score]) -> Score:
    """A ranking score with the leakage of its attack by the threat's other metric, if that is larger."""
    also = threat(score.threat).beside(score.metric)
    if not score.primary or not also:
        return score
    key = (score.attack, score.threat, score.target, also)
    other = next((s for s in graded if (s.attack, s.threat, s.target, s.metric) == key), None)
    if other is None or other.leakage is None or other.leakage <= (score.leakage or 0.0):
        return score
    return replace(
        score,
        leakage=other.leakage,
        leakage_ci=other.leakage_ci,
        leakage_by=also,
        encoder_leakage=other.encoder_leakage,
    )
