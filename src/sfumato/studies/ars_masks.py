"""``ars-table6``: what a partly right mask is worth, and the binomial argument that nobody guesses one (§6.1)."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from sfumato import load_splits
from sfumato.auditing.mask_overlap import overlap_errors
from sfumato.mechanisms.ars.mechanism import ARS
from sfumato.studies.base import Measurement
from sfumato.studies.rows import Row, plain_row

_PAPER = {1.0: (0.119, 0.101, 0.082, 0.048, 0.021), 2.0: (0.179, 0.156, 0.128, 0.090, 0.025)}
"""ε = 50 and 100 of the paper, at these overlapping rates:"""
_RATES = (0.0, 0.25, 0.5, 0.75, 1.0)
_QUOTED, _DIMENSIONS, _ENOUGH = 2.449e-16, 256, 0.75


def rows(
    *, data: str = "mnist", scale: str = "cpu", seed: int = 0, say: Callable[[str], None] = lambda _: None, **_: Any
) -> list[Row]:
    """One party and one mask; the attacker's decoder is trained under a mask of the given overlap."""
    small = scale == "smoke"
    limit = 1500 if small else 24_000 if scale == "cpu" else None
    splits = load_splits(data, utility=["digit"], private=[], limit=limit, seed=seed)
    found = []
    for epsilon, paper in _PAPER.items():
        mechanism = ARS(variant="published", epsilon=epsilon, epochs=2 if small else 20, seed=seed).fit(splits.owner)
        overlaps = overlap_errors(mechanism, splits, _RATES, seed=seed)
        for overlap, theirs in zip(overlaps, paper, strict=True):
            say(f"ε = {epsilon:g}, overlap {overlap.rate:.0%}: {overlap.error.value:.4f}")
            name = f"ε = {epsilon:g}: error at an overlap of {overlap.rate:.0%}"
            found.append(Row(name, "mse", "higher", theirs, overlap.error.value, overlap.error.ci))
        errors = [overlap.error.value for overlap in overlaps]
        falls = all(a >= b for a, b in pairwise(errors[2:]))
        fall = errors[2] / errors[-1]
        name = f"ε = {epsilon:g}: error at half overlap over that of the right mask, falling from half on"
        found.append(plain_row(name, "mse", "higher", fall, paper=paper[2] / paper[-1], holds=falls and fall > 1))
    tail = binomial_tail(_DIMENSIONS, _ENOUGH)
    name = f"chance that a random mask of {_DIMENSIONS} dimensions overlaps by {_ENOUGH:.0%} or more, exact"
    found.append(plain_row(name, "probability", "lower", tail, paper=_QUOTED, holds=tail <= 10 * _QUOTED))
    return found


def binomial_tail(n: int, share: float) -> float:
    """P[X ≥ share · n] for X ~ B(n, ½) (Eqs. 16 and 17), exactly."""
    return float(sum(math.comb(n, k) for k in range(math.ceil(share * n), n + 1)) / 2**n)


STUDY = Measurement(
    name="ars-table6",
    family="ars-masks",
    title="Error over the overlap of two masks, Table 6",
    about=(
        "A mask that overlaps more leaks more, and a random one of 256 dimensions overlaps by 75 % with a chance of "
        "2.4e-16. That bounds guessing alone: ars-figure4 reads the mask off the release."
    ),
    data=("mnist", "digits"),
    run=rows,
)
