"""How differently the groups of a private label fare with what a receiver predicts.

For the prediction Ŷ, the truth Y and the group A, which is the class of a private label:

    demographic parity   P[Ŷ = c | A = a]             is the same in every group a
    equal opportunity    P[Ŷ = c | Y = c, A = a]      for the positive class c
    equalised odds       P[Ŷ = c | Y = c, A = a]      and P[Ŷ = c | Y ≠ c, A = a]

The first is what Chen et al. (the filter's paper, §4) speak of in words: "the prediction of a target output to be
independent with respect to certain protected attributes". The other two are Hardt et al. 2016, which it leaves for
future work. The figure is the largest difference of such a rate between two groups,

    max_c (max_a r_c(a) − min_a r_c(a)),    in [0, 1], 0 where all groups fare alike.

With two classes c is the second one, as the rates of the first say the same again, and it is the positive class; with
more, every class in turn. The prediction is the likeliest class.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.intervals import CONFIDENCE, Interval, independent_records, share_interval
from sfumato.core.metrics import Values
from sfumato.core.score import Score
from sfumato.core.threats import FAIRNESS

PARITY = "demographic-parity-gap"
OPPORTUNITY = "equal-opportunity-gap"
ODDS = "equalised-odds-gap"
MEASURES = (PARITY, OPPORTUNITY, ODDS)
FEWEST = 30
"""Records of a group that a rate is read from; a smaller group is left out, and that is said."""
_DRAWS = 400
_NAMED = 6
"""Cells that a note names before it counts the rest."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _Rate:
    """P[Ŷ = ``code``] among the records ``counted``, in every group that is ``kept``; ``who`` they are, in words."""

    code: int
    counted: Mask
    who: str
    kept: Mask

    @property
    def compares(self) -> bool:
        return int(self.kept.sum()) > 1


def fairness_scores(
    task: str,
    label: str,
    probabilities: FloatArray,
    victim: Dataset,
    control: Mapping[str, float],
    *,
    primary: bool,
) -> list[Score]:
    """The three differences for each private label, of class probabilities (N, classes) for a utility label.

    ``control`` maps "metric:private label" to what the same classifier gets that was trained on raw records. A table
    shows those that are ``primary``; nothing ranks by them. What cannot be compared has no score (``unmeasured``).
    """
    guess, people = probabilities.argmax(axis=1), np.unique(victim.ids, return_inverse=True)[1]
    scores = []
    for group, measure in product(victim.schema.with_classes(victim.private), MEASURES):
        started = time.perf_counter()
        rates = _rates(measure, victim, label, group)
        compared = [rate for rate in rates if rate.compares]
        if not compared:
            continue
        value, interval, chance = _compare(compared, guess, victim.private[group], people)
        rows = np.any([rate.counted & rate.kept[victim.private[group]] for rate in compared], axis=0)
        scores.append(
            Score(
                attack=task,
                threat=FAIRNESS,
                metric=measure,
                better_for_owner="lower",
                value=value,
                ci=interval,
                baseline=chance,
                control=control.get(f"{measure}:{group}"),
                n=int(rows.sum()),
                seconds=round(time.perf_counter() - started, 3),
                primary=primary,
                target=label,
                limits=(0.0, 1.0),
                people=len(np.unique(people[rows])),
                group=group,
                note=_note(measure, rates, victim, label, group),
            )
        )
    return scores


def unmeasured(victim: Dataset, labels: Iterable[str]) -> list[tuple[str, str]]:
    """What has no score because no two groups are large enough or because there are none, and why."""
    found = []
    for label, group in product(dict.fromkeys(labels), victim.private):
        number = next((one for one in (label, group) if one in victim.schema.numbers), None)
        if number is not None:
            found.append((f"fairness of {label} by {group}", f"{number} is a number: groups and answers need classes"))
            continue
        missing = [m for m in MEASURES if not any(rate.compares for rate in _rates(m, victim, label, group))]
        if missing:
            reason = f"no two groups of {group} have {FEWEST} victims each that could be compared"
            found.append((f"fairness of {label} by {group}", f"{', '.join(missing)}: {reason}"))
    return found


def apart(scores: Iterable[Score]) -> tuple[tuple[Score, ...], tuple[Score, ...]]:
    """The scores of utility, and those of fairness among them."""
    every = tuple(scores)
    return tuple(s for s in every if s.threat != FAIRNESS), tuple(s for s in every if s.threat == FAIRNESS)


def _rates(measure: str, victim: Dataset, label: str, group: str) -> list[_Rate]:
    """The rates that a measure compares; they depend on the victims' labels alone."""
    truth, groups, classes = victim.utility[label], victim.private[group], victim.schema.classes(label)
    found = []
    for code in range(len(classes)) if len(classes) > 2 else [len(classes) - 1]:
        if measure == PARITY:
            asked = [(np.ones(len(truth), dtype=bool), "")]
        else:
            asked = [(truth == code, f" with {label} {classes[code]}")]
            asked += [(truth != code, f" without {label} {classes[code]}")] if measure == ODDS else []
        for counted, who in asked:
            sizes = np.bincount(groups[counted], minlength=len(victim.schema.classes(group)))
            found.append(_Rate(code, counted, who, sizes >= FEWEST))
    return found


def _compare(rates: list[_Rate], guess: IntArray, groups: IntArray, people: IntArray) -> tuple[float, Interval, float]:
    """The largest difference over all rates and pairs of groups, its interval, and its mean by chance alone.

    Every pair has Newcombe's interval of a difference (MOVER of two Wilson intervals by subjects) at 1 − 0.05/pairs, so
    that with 95 % all of them hold at once and the largest true difference lies between the largest of their lower and
    of their upper ends. A resampled maximum would never reach down to 0.
    """
    confidence = 1 - (1 - CONFIDENCE) / sum(int(rate.kept.sum() * (rate.kept.sum() - 1) / 2) for rate in rates)
    rng = np.random.default_rng(0)
    value, low, high, chance = 0.0, 0.0, 0.0, np.zeros(_DRAWS)
    for rate in rates:
        cells = [np.flatnonzero(rate.counted & (groups == a)) for a in np.flatnonzero(rate.kept)]
        hits = [(guess[cell] == rate.code).astype(np.float64) for cell in cells]
        share = np.array([one.mean() for one in hits])  # (groups,)
        ends = [share_interval(one, people[cell], confidence) for one, cell in zip(hits, cells, strict=True)]
        least, most = _ends(share, *np.array(ends).T)
        value, low, high = max(value, float(np.ptp(share))), max(low, least), max(high, most)
        worth = [independent_records(one, people[cell]) for one, cell in zip(hits, cells, strict=True)]
        drawn = np.maximum(1, np.round(worth)).astype(np.int64)
        alike = rng.binomial(drawn, np.concatenate(hits).mean(), size=(_DRAWS, len(drawn))) / drawn
        chance = np.maximum(chance, np.ptp(alike, axis=1))
    return value, (min(low, value), min(1.0, max(high, value))), float(chance.mean())


def _ends(share: Values, low: Values, high: Values) -> Interval:
    """The largest lower and the largest upper end of the intervals of p_a − p_b over all ordered pairs of groups."""
    apart = share[:, None] - share[None]  # (groups, groups)
    down = apart - np.hypot((share - low)[:, None], (high - share)[None])
    up = apart + np.hypot((high - share)[:, None], (share - low)[None])
    others = ~np.eye(len(share), dtype=bool)
    return max(0.0, float(down[others].max())), float(up[others].max())


def _note(measure: str, rates: list[_Rate], victim: Dataset, label: str, group: str) -> str:
    """Which class is the positive one, and who was left out."""
    classes, names = victim.schema.classes(label), victim.schema.classes(group)
    said = [f"Of {label} {classes[-1]}."] if measure == OPPORTUNITY and len(classes) == 2 else []
    small = [f"{group} {names[a]}{rate.who}" for rate in rates for a in np.flatnonzero(~rate.kept)]
    small = list(dict.fromkeys(small))
    if small:
        rest = f" and {len(small) - _NAMED} more" if len(small) > _NAMED else ""
        said.append(f"Left out, with fewer than {FEWEST} records: {', '.join(small[:_NAMED])}{rest}.")
    return " ".join(said)
