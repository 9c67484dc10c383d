"""How many nats a payload and a label share: an estimate without an attacker, so it ranks no attack."""

from __future__ import annotations

import math
import time

import numpy as np

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.metrics import Values
from sfumato.core.randomness import derive_seed
from sfumato.core.score import Score
from sfumato.privacy.local_correction import corrected_information
from sfumato.privacy.mutual_information import Terms, information, mutual_information

CORRECTED = "mutual-information-corrected"
WIDEST = 64
"""Numbers in a payload: in more dimensions the estimate is far too low to show."""
_MOST, _NUMBERS = 5_000, 160_000
"""Victims, and numbers in all: the search for neighbours takes minutes for 10,000 payloads of 64 numbers."""
_FEWEST = 50
_CORRECTED_WIDEST, _CORRECTED_MOST = 16, 2_000
"""Numbers in a payload and victims for the corrected estimate, which is slow."""


def information_scores(payload: FloatArray, victim: Dataset, seed: int) -> list[Score]:
    """I(payload; label) of every private and utility label with classes; nothing if the payload is no vector of up to
    64 numbers.

    Of up to 16 numbers also with local non-uniformity correction, which the `filter` paper cites. The baseline is the
    estimate for shuffled labels. A label has no score if fewer than 50 records are left without the classes that occur
    once, of which nothing can be estimated, nor if the estimate is a nat off what any label can share: with few
    records in many dimensions the correction breaks down.
    """
    if payload.ndim != 2 or payload.shape[1] > WIDEST:
        return []
    most = min(_MOST, _NUMBERS // payload.shape[1])
    rows = np.random.default_rng(derive_seed(seed, "information")).permutation(len(victim))[:most]
    points, few = _standardised(payload[rows]), victim.take(rows)
    labels = few.schema.with_classes([*few.private, *few.utility])
    scores = [_score("mutual-information", None, points, few, label, seed) for label in labels]
    if payload.shape[1] <= _CORRECTED_WIDEST:
        part, fewer = points[:_CORRECTED_MOST], few.take(slice(0, _CORRECTED_MOST))
        scores += [_score(CORRECTED, corrected_information, part, fewer, label, seed) for label in labels]
    return [score for score in scores if score is not None]


def _score(name: str, terms: Terms | None, points: Values, victim: Dataset, label: str, seed: int) -> Score | None:
    started = time.perf_counter()
    codes = victim.label(label)
    kept = np.bincount(codes)[codes] > 1
    codes = codes[kept]
    if len(codes) < _FEWEST:
        return None
    value, interval = information(points[kept], codes, victim.ids[kept], terms=terms)
    limits = (-1.0, math.log(len(victim.schema.classes(label))) + 1.0)
    if not limits[0] <= value <= limits[1]:
        return None
    return Score(
        attack=name,
        threat="information",
        metric="nats",
        better_for_owner="lower" if label in victim.private else "higher",
        value=value,
        ci=interval,
        baseline=_shuffled(terms or mutual_information, points[kept], codes, derive_seed(seed, "information", label)),
        control=None,
        n=len(codes),
        seconds=round(time.perf_counter() - started, 3),
        target=label,
        limits=limits,
    )


def _shuffled(terms: Terms, points: Values, codes: IntArray, seed: int) -> float:
    return float(terms(points, np.random.default_rng(seed).permutation(codes)).mean())


def _standardised(payload: FloatArray) -> Values:
    """Every column with mean 0 and deviation 1: neighbours are told by the largest difference."""
    values = payload.astype(np.float64)
    deviation = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))
