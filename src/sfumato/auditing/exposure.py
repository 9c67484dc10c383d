"""Who is worst off: leakage of groups, the share of people above a threshold, and the most exposed records.

For every threat the attack counts that counts for everybody, record by record beside a guesser without the release:

    leakage of a group = Σ (gained by the attack beyond the guesser) / Σ (to be gained)

With errors the whole error of the guesser, down to the control's, is to be gained, so that a record far from the mean
is compared with itself. Where an answer is right or wrong it is what the control gains on average over all records.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import Dataset, IntArray
from sfumato.core.intervals import CONFIDENCE, mean_interval, share_interval
from sfumato.core.metrics import Values
from sfumato.core.randomness import derive_seed
from sfumato.core.score import Score, worst_by_threat

THRESHOLD = 0.5
"""People of whom more than this is leaked are counted."""
FEWEST = 20
"""People in a group; smaller ones are pooled."""
SMALLER = "(smaller groups)"
_MOST_EXPOSED = 10
_SHUFFLES, _MOST_SHUFFLES, _AT_ONCE = 2_000, 20_000, 200
_ONE_SIDED = (1.0 - CONFIDENCE) / 2.0

_TELLING = 0.01
"""Groups that leak less than this more than the rest are not called worse, however sure that is."""

Codes = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Attempt:
    """The records behind the scores of an attack: their people, and for every label its classes and the class of each
    (of a number, four ranges).

    ``by_lot`` is, by metric, the value of each record if the attack's guesses are dealt to the records by lot.
    """

    ids: npt.NDArray[Any]
    labels: Mapping[str, tuple[tuple[str, ...], IntArray]]
    by_lot: Mapping[str, Values]

    @classmethod
    def on(cls, data: Dataset, by_lot: Mapping[str, Values]) -> Attempt:
        labels = {**data.utility, **data.private}
        return cls(data.ids, {name: data.schema.groups(name, codes) for name, codes in labels.items()}, by_lot)


Attempts = Mapping[tuple[str, str | None], Attempt]
"""By the attack's name and the label that it is about."""


@dataclass(frozen=True)
class _Gains:
    """What an attack gained on each record, (N,), and what there was to gain."""

    score: Score
    value: Values
    gained: Values
    room: Values
    right_or_wrong: bool
    attempt: Attempt

    def told(self) -> Values:
        """What the payload of each record was worth: what the attack got there, beyond its own guess for another.

        A guess that leans to one side suits one group better than another, without any release; this does not.
        """
        sign = 1.0 if self.score.better_for_owner == "lower" else -1.0
        return np.asarray(sign * (self.value - self.attempt.by_lot[self.score.metric]))

    def of_each(self) -> Values:
        """The leakage of every record, in [0, 1]; 0 where there was nothing to gain."""
        shares = np.divide(self.gained, self.room, out=np.zeros(len(self.gained)), where=self.room > 1e-12)
        return np.clip(shares, 0.0, 1.0)

    def over(self, rows: Codes, confidence: float) -> tuple[float, tuple[float, float]]:
        """The leakage of some records, with its interval."""
        gained, room, ids = self.gained[rows], self.room[rows], self.attempt.ids[rows]
        share = float(gained.sum() / room.sum())
        if self.right_or_wrong:
            middle = float(self.value[rows].mean())
            ends = share_interval(self.value[rows], ids, confidence)
            low, high = ((share + (end - middle) / float(room.mean())) for end in ends)
        else:
            off = (gained - share * room) / float(room.mean())
            low, high = (share + end for end in mean_interval(off, ids, confidence=confidence))
        inside = [min(1.0, max(0.0, end)) for end in (share, low, high)]
        return inside[0], (inside[1], inside[2])


def exposures(scores: Sequence[Score], attempts: Attempts, seed: int) -> dict[str, Any]:
    """For every threat whose worst attack has a value for each record, as JSON:

    attack, metric   that attack, and the metric of ``score`` below
    groups           [{column, value, n, people, score, ci, leakage, leakage_ci, worse}] for each class of each label,
                     but for the one that is attacked; ``ci`` and ``leakage_ci`` hold together in 95 % of audits, and
                     ``worse`` says that the payloads of the group tell more than those of the rest, in at most 2.5 % of
                     audits wrongly for any group of any threat
    worst_group      the group of the largest leakage; None where no group is large enough
    share_above      {threshold, share, ci, people}: people of whom more than ``threshold`` is leaked
    most_exposed     [{id, leakage, score}]: the ten records that leak most; for the owner's eyes alone
    """
    found = dict(_gains(scores, attempts))
    columns = {key: _columns(gains.attempt, gains.score.target) for key, gains in found.items()}
    comparisons = sum(len(names) for of in columns.values() for _, names, _ in of)
    return {
        key: _exposure(gains, columns[key], comparisons, derive_seed(seed, "exposure", key))
        for key, gains in found.items()
    }


def _gains(scores: Sequence[Score], attempts: Attempts) -> Iterator[tuple[str, _Gains]]:
    for key, worst in worst_by_threat(scores).items():
        attempt = attempts.get((worst.attack, worst.target))
        score = worst if worst.each is not None else _record_by_record(scores, worst)
        if attempt is None or score is None or score.each is None or score.guessed is None:
            continue
        if score.baseline is None or score.control is None or len(score.each) != len(attempt.ids):
            continue
        sign = 1.0 if score.better_for_owner == "lower" else -1.0
        average = sign * (score.control - score.baseline)
        if average <= 0:
            continue  # no attack wins where nothing is defended
        both = np.isin(score.each, (0.0, 1.0)).all()
        room = np.full(len(score.each), average) if both else np.maximum(sign * (score.control - score.guessed), 0.0)
        if room.sum() <= 0:
            continue
        yield key, _Gains(score, score.each, sign * (score.each - score.guessed), room, bool(both), attempt)


def _record_by_record(scores: Iterable[Score], worst: Score) -> Score | None:
    """Another metric of the same attack that has a value for each record."""
    same = (worst.attack, worst.threat, worst.target)
    return next((s for s in scores if (s.attack, s.threat, s.target) == same and s.each is not None), None)


def _columns(attempt: Attempt, target: str | None) -> list[tuple[str, list[str], Codes]]:
    """For every label the names of its groups, and the group of each record (−1: none).

    Not for the label that is attacked: a guesser who always names one class leaves nothing to gain there, by design.
    """
    found = []
    for label, (classes, codes) in attempt.labels.items():
        if label == target:
            continue
        people = [len(np.unique(attempt.ids[codes == code])) for code in range(len(classes))]
        large = [code for code, count in enumerate(people) if count >= FEWEST]
        names, group = [classes[code] for code in large], np.full(len(codes), -1, dtype=np.intp)
        for number, code in enumerate(large):
            group[codes == code] = number
        left = group == -1
        if left.any() and len(np.unique(attempt.ids[left])) >= FEWEST:
            group[left], names = len(names), [*names, SMALLER]
        if len(names) > 1 or (names and (group == -1).any()):
            found.append((label, names, group))
    return found


def _exposure(
    gains: _Gains, columns: Sequence[tuple[str, list[str], Codes]], comparisons: int, seed: int
) -> dict[str, Any]:
    confidence = 1.0 - (1.0 - CONFIDENCE) / max(1, comparisons)
    groups: list[dict[str, Any]] = []
    told = gains.told() if columns else gains.gained
    for column, names, group in columns:
        chances = _by_chance(gains, told, group, len(names), comparisons, derive_seed(seed, column))
        for number, name in enumerate(names):
            rows = np.flatnonzero(group == number)
            if gains.room[rows].sum() <= 0:
                continue
            value, ids = gains.value[rows], gains.attempt.ids[rows]
            within = share_interval if gains.right_or_wrong else mean_interval
            leakage, leakage_ci = gains.over(rows, confidence)
            groups.append(
                {
                    "column": column,
                    "value": name,
                    "n": len(rows),
                    "people": len(np.unique(ids)),
                    "score": float(value.mean()),
                    "ci": [float(end) for end in within(value, ids, confidence=confidence)],
                    "leakage": leakage,
                    "leakage_ci": list(leakage_ci),
                    "worse": bool(chances[number] * comparisons <= _ONE_SIDED),
                }
            )
    return {
        "attack": gains.score.attack,
        "metric": gains.score.metric,
        "groups": groups,
        "worst_group": max(groups, key=lambda one: float(one["leakage"]), default=None),
        "share_above": _share_above(gains),
        "most_exposed": _most_exposed(gains),
    }


def _by_chance(gains: _Gains, told: Values, group: Codes, count: int, comparisons: int, seed: int) -> Values:
    """For each group how often it would leak as much more than the rest if people had been put into groups by lot.

    Somebody's records in one group stay together. The observed case counts as one of the shuffles.
    """
    unit = np.unique(
        np.stack([np.unique(gains.attempt.ids, return_inverse=True)[1], group]), axis=1, return_inverse=True
    )
    of, sizes = unit[0][1], len(unit[0][1])
    sums = np.stack(
        [np.bincount(unit[1].reshape(-1), part, minlength=sizes).astype(np.float64) for part in (told, gains.room)]
    )
    order = np.argsort(of, kind="stable")
    starts = np.searchsorted(of[order], np.arange(-1, count))
    starts, present = np.unique(starts, return_index=True)
    total = sums.sum(axis=1)
    numbers = present - 1  # the group behind each start; −1 are those in none

    def apart(parts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """(…, 2, units) in the order of the groups → how much more each leaks than the rest, (…, starts)."""
        inside = np.add.reduceat(parts, starts, axis=-1)
        outside = total[:, None] - inside
        tiny = 1e-12
        return np.asarray(
            inside[..., 0, :] / np.maximum(inside[..., 1, :], tiny)
            - outside[..., 0, :] / np.maximum(outside[..., 1, :], tiny)
        )

    seen, rng = apart(sums[:, order]), np.random.default_rng(seed)
    times = min(_MOST_SHUFFLES, max(_SHUFFLES, math.ceil(2 * comparisons / _ONE_SIDED)))
    as_much = np.ones(len(starts))
    too_often, done = (times + 1) * _ONE_SIDED / comparisons, 0
    while done < times and ((as_much <= too_often) & (seen >= _TELLING)).any():  # counts only grow
        some = min(_AT_ONCE, times - done)
        lots = rng.permuted(np.broadcast_to(np.arange(sizes), (some, sizes)), axis=1)
        as_much += (apart(np.moveaxis(sums[:, lots], 0, 1)) >= seen - 1e-12).sum(axis=0)
        done += some
    chances = np.ones(count)
    for place, number in enumerate(numbers):
        if number >= 0:
            chances[number] = as_much[place] / (times + 1) if done == times and seen[place] >= _TELLING else 1.0
    return chances


def _share_above(gains: _Gains) -> dict[str, Any]:
    people, row = np.unique(gains.attempt.ids, return_inverse=True)
    each = np.bincount(row, gains.of_each()) / np.bincount(row)
    above = (each > THRESHOLD).astype(np.float64)
    share, interval = float(above.mean()), share_interval(above)
    return {"threshold": THRESHOLD, "share": share, "ci": [float(end) for end in interval], "people": len(people)}


def _most_exposed(gains: _Gains) -> list[dict[str, Any]]:
    each = gains.of_each()
    sign = 1.0 if gains.score.better_for_owner == "lower" else -1.0
    first = np.lexsort((-sign * gains.value, -each))[:_MOST_EXPOSED]
    return [
        {"id": str(gains.attempt.ids[row]), "leakage": float(each[row]), "score": float(gains.value[row])}
        for row in first
    ]
