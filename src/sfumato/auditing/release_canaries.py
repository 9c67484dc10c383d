"""How private each released record can be at most, where a mechanism claims (ε, δ) for every record on its own.

Two of the victims' records that are far apart are released many times each, as they would be in earnest: with the noise
of the operating system, and with all that leaves beside the payload. Whoever sees one of these releases guesses which
record it was; how often that succeeds gives a lower bound of ε, whatever the noise is.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from sfumato.auditing.canaries import Losses, claim_score, lower_bound
from sfumato.core.dataset import Dataset
from sfumato.core.metrics import Values
from sfumato.core.release import Release
from sfumato.core.score import Score
from sfumato.mechanisms.base import Mechanism

RELEASED = "canary-release"
TITLE = "One record or another, released"
MOST_RELEASED = 4_000
"""Releases of each of the two records."""
_MOST = 1000
"""Victims among which the two are looked for."""


def release_score(mechanism: Mechanism, victims: Dataset, draws: int) -> Score:
    """A lower bound of ε from releases of two records, beside what is claimed."""
    started = time.perf_counter()
    claimed = mechanism.guarantee()
    if claimed.delta is None:
        raise ValueError(f"{mechanism.name} claims no δ.")
    released = [mechanism.release(_copies(victims, row, draws)) for row in far_apart(victims)]
    value, most = lower_bound(Losses(*_told(*released)), claimed.delta)
    return claim_score(RELEASED, value, most, 2 * draws, claimed.epsilon, time.perf_counter() - started)


def far_apart(data: Dataset) -> tuple[int, int]:
    """Two records that differ in as many labels as possible, and among those in the records most: far from the mean."""
    flat = data.x[:_MOST].reshape(min(len(data), _MOST), -1).astype(np.float64)
    labels = np.stack([codes[:_MOST] for codes in (*data.utility.values(), np.zeros(len(data)))], axis=1)
    first = int(((flat - flat.mean(axis=0)) ** 2).sum(axis=1).argmax())
    distance = ((flat - flat[first]) ** 2).sum(axis=1)
    differing = (labels != labels[first]).sum(axis=1)
    return first, int(np.lexsort((distance, differing))[-1])


def _copies(data: Dataset, row: int, count: int) -> Dataset:
    """So many people with the same record."""
    same = data.take(np.full(count, row, dtype=np.intp))
    return replace(same, ids=np.array([f"copy:{number}" for number in range(count)]), named=False)


def _told(one: Release, other: Release) -> tuple[Values, Values]:
    """How much each release looks like one of ``other``: payload along the line between the means, then the labels.

    Labels that the guarantee leaves in clear are outside of the claim, so they are not read.
    """
    first, second = (release.payload.reshape(len(release), -1).astype(np.float64) for release in (one, other))
    line = second[::2].mean(axis=0) - first[::2].mean(axis=0)  # from the half that also chooses the threshold
    told = [payload @ line for payload in (first, second)]
    for label in (name for name in one.utility if name not in one.guarantee.in_clear):
        usual = one.utility[label][0], other.utility[label][0]
        if usual[0] != usual[1]:
            far = 1.0 + np.ptp(np.concatenate(told))
            told = [t + far * (r.utility[label] == usual[1]) for t, r in zip(told, (one, other), strict=True)]
    return told[0], told[1]
