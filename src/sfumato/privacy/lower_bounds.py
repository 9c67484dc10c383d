"""Lower bounds of ε from how often an adversary told two neighbouring data sets apart."""

from __future__ import annotations

import math

from sfumato.core.errors import UsageError


def epsilon_lower_bound(
    true_positives: int,
    positives: int,
    false_positives: int,
    negatives: int,
    delta: float,
    confidence: float = 0.95,
) -> float:
    """Return a lower bound of the mechanism's ε that holds with this confidence; 0 if nothing follows.

    A test said "the record is there" in ``true_positives`` of ``positives`` runs with it and in ``false_positives`` of
    ``negatives`` runs without it. (ε, δ) implies TPR ≤ e^ε·FPR + δ and TNR ≤ e^ε·FNR + δ, so

        ε ≥ max(log((TPR − δ)/FPR), log((TNR − δ)/FNR)).

    TPR is replaced by its lower and FPR by its upper Clopper–Pearson limit, each at (1 − confidence)/2. TNR = 1 − FPR
    and FNR = 1 − TPR follow from the same two limits, so both bounds hold at once. The runs must be independent and the
    test fixed beforehand: a threshold chosen on the same runs proves nothing.
    """
    _check("true_positives", true_positives, "positives", positives)
    _check("false_positives", false_positives, "negatives", negatives)
    if not 0.0 <= delta < 1.0:
        raise UsageError(f"epsilon_lower_bound: delta must lie in [0, 1), got {delta!r}.")
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"epsilon_lower_bound: confidence must lie between 0 and 1, got {confidence!r}.")
    risk = (1.0 - confidence) / 2.0
    hit = lower_share(true_positives, positives, risk)
    alarm = upper_share(false_positives, negatives, risk)
    ratios = ((hit - delta, alarm), (1.0 - alarm - delta, 1.0 - hit))
    return max([0.0, *(math.log(above / below) for above, below in ratios if above > 0.0)])


def lower_share(hits: int, trials: int, risk: float) -> float:
    """Return the lower Clopper–Pearson limit, the p for which ``hits`` or more have probability ``risk``."""
    from scipy.stats import beta

    return 0.0 if hits == 0 else float(beta.ppf(risk, hits, trials - hits + 1))


def upper_share(hits: int, trials: int, risk: float) -> float:
    """Return the upper Clopper–Pearson limit, the p for which ``hits`` or fewer have probability ``risk``."""
    return 1.0 - lower_share(trials - hits, trials, risk)


def _check(part: str, count: int, whole: str, total: int) -> None:
    if total < 1 or not 0 <= count <= total:
        raise UsageError(
            f"epsilon_lower_bound: 0 ≤ {part} ≤ {whole} and {whole} ≥ 1 must hold, got {count} and {total}."
        )
