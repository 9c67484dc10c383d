"""``ars-table6``: what a partly right mask is worth, and the binomial argument that nobody guesses one (§6.1)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sfumato import load_splits
from sfumato.auditing.mask_overlap import largest_changes, masked_release
from sfumato.core.intervals import mean_interval, share_interval
from sfumato.mechanisms.ars.mechanism import ARS
from sfumato.studies.ars_base import FIFTY, HUNDRED, SEEDS, papers_epsilon
from sfumato.studies.base import Measurement
from sfumato.studies.papers import paper
from sfumato.studies.rows import Row, Values, plain_row
from sfumato.studies.verdicts import Asked

_RATES = (0.0, 0.25, 0.5, 0.75, 1.0)
PARTIES = 5
_ROUNDING = 1e-4
"""Ten sums of 32-bit numbers, as a share of ε."""
_ALL = 0.999
"""What counts as every record: of a sample nothing higher can be shown."""


def rows(
    *,
    data: str = "mnist",
    scale: str = "cpu",
    limit: int | None = None,
    seed: int = 0,
    say: Callable[[str], None] = lambda _: None,
    **_: Any,
) -> list[Row]:
    """Five parties, each with a mask; the attacker's decoder is trained under masks of the given overlap."""
    small = scale == "smoke"
    splits = load_splits(data, utility=["digit"], private=[], limit=limit, seed=seed)
    found = []
    for epsilon in (FIFTY, HUNDRED):
        mechanism = ARS(
            parties=PARTIES, variant="published", epsilon=epsilon, epochs=2 if small else 20, seed=seed
        ).fit(splits.owner)
        shared = masked_release(mechanism, splits, seed=seed, steps=200 if small else 2000)
        overlaps = [shared.at(rate) for rate in _RATES]
        for overlap in overlaps:
            say(f"ε = {epsilon:g}, overlap {overlap.rate:.0%}: {overlap.error.value:.4f}")
            theirs = paper("ars").figure("Table 6", papers_epsilon(epsilon), f"{100 * overlap.rate:g} %")
            name = f"ε = {epsilon:g}: error at an overlap of {overlap.rate:.0%}"
            found.append(
                Row(name, "mse", "higher", theirs, overlap.error.value, overlap.error.ci, n=len(splits.victim))
            )
        at = {overlap.rate: overlap.error.each for overlap in overlaps}
        searched = shared.searched().error
        name = f"ε = {epsilon:g}: error"
        found += [
            Row(f"{name} of who searches among random masks", "mse", "higher", None, searched.value, searched.ci),
            more_error(
                f"{name} at an overlap of 50%, less under the right mask",
                at[0.5],
                at[1.0],
                "ars-overlap-leaks",
            ),
            more_error(
                f"{name} of who searches, less at an overlap of 75%", searched.each, at[0.75], "ars-brute-force"
            ),
        ]
        moved = largest_changes(mechanism, splits.victim, seed) / epsilon
        name = f"ε = {epsilon:g}: largest change of a number of a latent, over ε"
        found.append(plain_row(name, "ratio", "lower", float(moved.max()), n=len(moved)))
        kept = (moved <= 1.0 + _ROUNDING).astype(np.float64)
        asked = Asked("ars-noise-limited", "above", _ALL)
        name = f"ε = {epsilon:g}: records of which no number changes by more than ε"
        found.append(Row(name, "share", "higher", None, float(kept.mean()), share_interval(kept), asked, n=len(kept)))
    return [*found, *_guesses()]


def more_error(name: str, a: Values | None, b: Values | None, claim: str) -> Row:
    """How much larger the first errors are, over the same victims."""
    assert a is not None and b is not None  # a reconstruction has an error for each record
    more = a - b
    asked = Asked(claim, "above", 0.0)
    return Row(name, "mse difference", "higher", None, float(more.mean()), mean_interval(more), asked, len(more))


def _guesses() -> list[Row]:
    """A mask that is guessed: its chance of being good enough, and how much of it is right on average."""
    said = paper("ars")
    quoted, enough, n = (said.figure("§6.1", "lucky mask", c) for c in ("chance × 1e16", "overlap", "dimensions"))
    return [
        plain_row(
            f"chance that a random mask of {n:g} dimensions overlaps by {enough:.0%} or more",
            "probability × 1e16",
            "lower",
            1e16 * binomial_tail(int(n), enough),
            paper=quoted,
            asked=Asked("ars-brute-force", "below", quoted),
            exact=True,
        ),
        guessed_share(),
    ]


def guessed_share() -> Row:
    """What the paper argues with: guessing alone gets half of a mask right."""
    enough = paper("ars").figure("§6.1", "lucky mask", "overlap")
    name = "share of the mask that a random one has right, on average"
    asked = Asked("ars-mask-preserves", "below", enough)
    return plain_row(name, "overlap", "lower", 0.5, asked=asked, exact=True)


def binomial_tail(n: int, share: float) -> float:
    """P[X ≥ share · n] for X ~ B(n, ½) (Eqs. 16 and 17), exactly."""
    return float(sum(math.comb(n, k) for k in range(math.ceil(share * n), n + 1)) / 2**n)


STUDY = Measurement(
    name="ars-table6",
    family="ars-masks",
    title="Error over the overlap of two masks, Table 6",
    about="Five parties, each with a mask of its own. Error of a decoder that was trained under masks which agree with "
    "the victims' by a given share, of who searches for them, and the exact chance of guessing one. That is about "
    "guessing alone: ars-figure4 reads the mask off the release.",
    data=("mnist", "digits"),
    run=rows,
    claims=("ars-overlap-leaks", "ars-brute-force", "ars-mask-preserves", "ars-noise-limited"),
    seeds=SEEDS,
    limits={"smoke": 1500, "cpu": 24_000},
)
