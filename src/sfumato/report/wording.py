"""How figures and names are written: one place, so that the page and the card agree."""

from __future__ import annotations

import math

from sfumato.core.guarantee import Guarantee
from sfumato.core.score import Score

_PERCENT = {
    "accuracy",
    "balanced-accuracy",
    "rate",
    "tpr-at-1-fpr",
    "precision",
    "recall",
    "overlap",
    "category-accuracy",
}
_RADIANS = {"angle", "angle-folded"}
_METRICS = {
    "mse": "MSE",
    "l1": "L1 error",
    "psnr": "PSNR",
    "ssim": "SSIM",
    "auroc": "AUROC",
    "accuracy": "accuracy",
    "balanced-accuracy": "balanced accuracy",
    "advantage": "advantage",
    "rate": "rate",
    "overlap": "overlap",
    "category-accuracy": "categories right",
    "angle": "angle error",
    "angle-folded": "angle error, opposites as one",
    "tpr-at-1-fpr": "TPR at 1 % FPR",
    "epsilon-lower-bound": "ε at least",
    "column-shapes": "column shapes",
    "pair-trends": "column pair trends",
    "frechet-distance": "Fréchet distance",
}
_GREEK = {"lam": "λ", "lambda": "λ", "epsilon": "ε", "eps": "ε", "delta": "δ", "sigma": "σ", "beta": "β"}
KINDS = {
    "dp": "Differential privacy (proven)",
    "anonymity": "Anonymity, under conditions",
    "empirical": "Empirical",
    "as-published": "As published: NOT PROVEN",
}


def number(value: float | None, metric: str, *, unit: bool = True) -> str:
    """A value as the metric is usually written; a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    if metric in _PERCENT:
        return f"{100 * value:.1f} %" if unit else f"{100 * value:.1f}"
    if metric == "psnr":
        return f"{value:.1f} dB" if unit else f"{value:.1f}"
    if metric in _RADIANS:
        return f"{value:.3f} rad" if unit else f"{value:.3f}"
    if metric in ("mse", "l1"):
        return _significant(value)
    return f"{value:.3f}".replace("-0.000", "0.000")


def reference(value: float | None, metric: str) -> str:
    """A baseline or a control: as ``number``, without the zeros at the end of an error."""
    text = number(value, metric)
    return text.rstrip("0") if metric in ("mse", "l1") and "." in text and "e" not in text else text


def interval(score: Score) -> str:
    """The 95 % interval, in brackets, without the unit."""
    low, high = (number(end, score.metric, unit=False) for end in score.ci)
    return f"[{low}, {high}]"


def measured(score: Score) -> str:
    """Value and interval."""
    return f"{number(score.value, score.metric)} {interval(score)}"


def leak(score: Score) -> str:
    """Leakage and its interval in whole percent; "" where it cannot be stated."""
    if score.leakage is None or score.leakage_ci is None:
        return ""
    low, high = (f"{100 * end:.0f}" for end in score.leakage_ci)
    return f"{100 * score.leakage:.0f} % [{low}, {high}]"


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
    """ "a", "a and b", "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "nothing"


def epsilon_line(guarantee: Guarantee) -> str:
    """What may be said about ε: never more than the guarantee does."""
    if guarantee.kind == "dp":
        return (
            f"ε = {guarantee.epsilon:g}, δ = {guarantee.delta:g}, "
            f"for data sets that are neighbours by: {guarantee.relation}."
        )
    if guarantee.kind == "as-published":
        return f"The paper states ε = {guarantee.epsilon:g}, δ = {guarantee.delta:g}. This is NOT PROVEN."
    if guarantee.kind == "anonymity":
        return (
            f"{one_in(guarantee)[0].upper()}{one_in(guarantee)[1:]}: which of the records in a "
            f"message is meant is guessed right with probability {guarantee.anonymity:.3g} if every condition holds; "
            "if one does not, nothing is promised. No ε can be stated."
        )
    return "No ε can be stated: what is known is what the attacks measured."


def kind_line(guarantee: Guarantee) -> str:
    """The kind of a guarantee; an anonymity says among how many."""
    among = f": {one_in(guarantee)}" if guarantee.kind == "anonymity" else ""
    return f"{KINDS[guarantee.kind]}{among}"


def one_in(guarantee: Guarantee) -> str:
    """ "one in 2", for a probability of 1/2."""
    return f"one in {1 / guarantee.anonymity:.3g}" if guarantee.anonymity else "not one"


def _significant(value: float) -> str:
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    if exponent < -6:
        return f"{value:.1e}"
    return f"{value:.{max(0, 2 - exponent)}f}" if exponent < 3 else f"{value:,.0f}"
