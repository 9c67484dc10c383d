"""How figures and names are written: one place, so that the page and the card agree."""

from __future__ import annotations

import math

from sfumato.core.score import Score
from sfumato.report.audited_runs import Reading

_PERCENT = {"accuracy", "mean-accuracy", "balanced-accuracy", "category-accuracy", "whole-record", "rate"}
_PERCENT |= {"tpr-at-1-fpr", "tpr-at-0.1-fpr", "precision", "recall", "overlap"}
_PERCENT |= {"other-class-neighbours", "exact-copies", "unique-exact-matches", "inconsistencies"}
ERRORS = {"mse", "l1"}  # drawn on a logarithmic scale
_IN_ITS_UNIT = {"mae"}  # of the label, whatever that is: three digits
_UNITS = {
    "k-marginal": (0, "of 1000"),
    "psnr": (1, "dB"),
    "angle": (3, "rad"),
    "angle-folded": (3, "rad"),
}  # decimals and unit
_METRICS = {
    "mse": "MSE",
    "l1": "L1 error",
    "psnr": "PSNR",
    "ssim": "SSIM",
    "r2": "R²",
    "mae": "mean absolute error",
    "identity": "likeness to the person",
    "auroc": "AUROC",
    "mean-accuracy": "accuracy, mean of all labels",
    "balanced-accuracy": "balanced accuracy",
    "category-accuracy": "categories right",
    "whole-record": "whole records right",
    "angle": "angle error",
    "angle-folded": "angle error, opposites as one",
    "tpr-at-1-fpr": "TPR at 1 % FPR",
    "tpr-at-0.1-fpr": "TPR at 0.1 % FPR",
    "epsilon-lower-bound": "ε at least",
    "column-shapes": "column shapes",
    "pair-trends": "column pair trends",
    "k-marginal": "k-marginal, k = 2",
    "propensity-error": "propensity error",
    "association-error": "association error",
    "unique-exact-matches": "unique records met",
    "inconsistencies": "impossible combinations",
    "frechet-distance": "Fréchet distance",
    "contrast": "contrast, in shares of real",
    "dynamic-range": "dynamic range, in shares of real",
    "other-class-neighbours": "nearest of another class",
    "exact-copies": "exact copies",
    "demographic-parity-gap": "demographic parity gap",
    "equal-opportunity-gap": "equal opportunity gap",
    "equalised-odds-gap": "equalised odds gap",
}
_GREEK = {"lam": "λ", "lambda": "λ", "epsilon": "ε", "eps": "ε", "delta": "δ", "sigma": "σ", "beta": "β"}


def number(value: float | None, metric: str, *, unit: bool = True) -> str:
    """A value as the metric is usually written; a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    if metric in ERRORS or metric in _IN_ITS_UNIT:
        return _significant(value)
    decimals, name = (1, "%") if metric in _PERCENT else _UNITS.get(metric, (3, ""))
    shown = f"{100 * value if metric in _PERCENT else value:.{decimals}f}"
    if not name:
        return shown.replace("-0.000", "0.000")
    return f"{shown} {name}" if unit else shown


def reference(value: float | None, metric: str) -> str:
    """A baseline or a control: as ``number``, without trailing zeros in an error."""
    text = number(value, metric)
    return text.rstrip("0") if metric in ERRORS and "." in text and "e" not in text else text


def interval(score: Score | Reading) -> str:
    """The 95 % interval in brackets, without the unit."""
    low, high = (number(end, score.metric, unit=False) for end in score.ci)
    return f"[{low}, {high}]"


def measured(score: Score | Reading) -> str:
    """Value and interval."""
    return f"{number(score.value, score.metric)} {interval(score)}"


def named(score: Score) -> str:
    """Metric, value and interval."""
    return f"{metric_name(score.metric, score.threat)} {measured(score)}"


def leak(score: Score) -> str:
    """Leakage and its interval in whole percent, by which metric if it is another, and of the same encoder without
    noise where that was measured; "" where it cannot be stated."""
    if score.leakage is None or score.leakage_ci is None:
        return ""
    low, high = (f"{100 * end:.0f}" for end in score.leakage_ci)
    by = f" by {metric_name(score.leakage_by)}" if score.leakage_by not in (None, score.metric) else ""
    of = f"; {100 * score.encoder_leakage:.0f} % of the same encoder" if score.encoder_leakage is not None else ""
    return f"{100 * score.leakage:.0f} % [{low}, {high}]{by}{of}"


def guesser(score: Score) -> str:
    """Who gets the baseline of a utility task."""
    return "mean guess" if score.metric == "r2" else "majority guess"


def metric_name(metric: str, threat: str = "") -> str:
    """The metric in words; a rate of rows says what it is a rate of."""
    return "rate of the right row" if (metric, threat) == ("rate", "row") else _METRICS.get(metric, metric)


def parameter_name(name: str) -> str:
    return _GREEK.get(name, name)


def direction(score: Score) -> str:
    return f"{score.better_for_owner} is better for the owner"


def count(amount: int, noun: str) -> str:
    """ "1 run", "2,000 records"."""
    return f"{amount:,} {noun}" if amount == 1 else f"{amount:,} {noun}s"


def listed(names: list[str]) -> str:
    """ "a", "a and b", "a, b and c"; "nothing" where there are none."""
    if len(names) > 1:
        return f"{', '.join(names[:-1])} and {names[-1]}"
    return names[0] if names else "nothing"


def unbroken(text: str) -> str:
    """Text in which a number stays on one line with its unit, and a setting with its value."""
    return text.replace(" %", "\u00a0%").replace(" = ", "\u00a0=\u00a0")


def _significant(value: float) -> str:
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    if exponent < -6:
        return f"{value:.1e}"
    return f"{value:.{max(0, 2 - exponent)}f}" if exponent < 3 else f"{value:,.0f}"
