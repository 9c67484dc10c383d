"""A lower bound of ε from a single run with many canaries, each there or not by the toss of a coin."""

from __future__ import annotations

import math

from sfumato.core.errors import UsageError


def one_run_bound(correct: int, guesses: int, canaries: int, delta: float, confidence: float = 0.95) -> float:
    """The ε that every (ε, δ)-guarantee must reach if ``correct`` of ``guesses`` about ``canaries`` are right.

    Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run" (2023), Theorem 5.2: each canary is
    included with probability ½ by itself, and how many are guessed at (the others are passed over) is fixed before.
    With W ~ Binomial(guesses, e^ε/(e^ε + 1)), an (ε, δ)-private mechanism allows v right guesses or more with a
    probability of at most

        P[W ≥ v] + 2·canaries·δ·max over i ≥ 1 of P[v > W ≥ v − i]/i.

    The bound is the largest ε at which that is below 1 − confidence.
    """
    if not 0 <= correct <= guesses <= canaries or guesses < 1:
        raise UsageError(f"one_run_bound: {correct} right of {guesses} guesses about {canaries} canaries cannot be.")
    if not (0.0 <= delta < 1.0 and 0.0 < confidence < 1.0):
        raise UsageError(f"one_run_bound: delta {delta!r} or confidence {confidence!r} is not a probability.")
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
    """The largest probability of so many right guesses under (ε, δ): the right-hand side of the theorem."""
    import numpy as np
    from scipy.stats import binom

    right = 1.0 / (1.0 + math.exp(-epsilon))
    chance = float(binom.sf(correct - 1, guesses, right))
    if correct > 0:
        below = np.cumsum(binom.pmf(np.arange(correct - 1, -1, -1), guesses, right))  # P[v > W ≥ v − i], i = 1 … v
        chance += 2.0 * canaries * delta * float((below / np.arange(1, correct + 1)).max())
    return min(chance, 1.0)
