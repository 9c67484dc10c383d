"""A lower bound of ε from a single run with many canaries, each included by a coin toss."""

from __future__ import annotations

import math

from sfumato.core.errors import UsageError


def one_run_bound(correct: int, guesses: int, canaries: int, delta: float, confidence: float = 0.95) -> float:
    """Return a lower bound of ε, given that ``correct`` of ``guesses`` about ``canaries`` were right.

    Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run" (2023), Theorem 5.2: each canary is
    included independently with probability ½, and the number of guesses (the other canaries are skipped) is fixed in
    advance. With W ~ Binomial(guesses, e^ε/(e^ε + 1)), an (ε, δ)-private mechanism allows v or more correct guesses
    with probability at most

        P[W ≥ v] + 2·canaries·δ·max over i ≥ 1 of P[v > W ≥ v − i]/i.

    The bound is the largest ε at which this is below 1 − confidence; every (ε, δ) guarantee must reach it.
    """
    if not 0 <= correct <= guesses <= canaries or guesses < 1:
        raise UsageError(
            "one_run_bound: 0 ≤ correct ≤ guesses ≤ canaries and guesses ≥ 1 must hold, "
            f"got {correct}, {guesses} and {canaries}."
        )
    if not (0.0 <= delta < 1.0 and 0.0 < confidence < 1.0):
        raise UsageError(
            f"one_run_bound: 0 ≤ delta < 1 and 0 < confidence < 1 must hold, got {delta!r} and {confidence!r}."
        )
    risk = 1.0 - confidence
    if chance_of_luck(correct, guesses, canaries, 0.0, delta) >= risk:
        return 0.0
    low, high = 0.0, 1.0
    while chance_of_luck(correct, guesses, canaries, high, delta) < risk:
        low, high = high, 2.0 * high
    for _ in range(40):
        middle = (low + high) / 2.0
        if chance_of_luck(correct, guesses, canaries, middle, delta) < risk:
            low = middle
        else:
            high = middle
    return low


def chance_of_luck(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """Return the largest probability of this many correct guesses under (ε, δ), the theorem's right-hand side."""
    import numpy as np
    from scipy.stats import binom

    right = 1.0 / (1.0 + math.exp(-epsilon))
    chance = float(binom.sf(correct - 1, guesses, right))
    if correct > 0:
        below = np.cumsum(binom.pmf(np.arange(correct - 1, -1, -1), guesses, right))  # P[v > W ≥ v − i], i = 1 … v
        chance += 2.0 * canaries * delta * float((below / np.arange(1, correct + 1)).max())
    return min(chance, 1.0)
