"""How figures and names are written: one place, so that the page and the card agree."""

from __future__ import annotations

import math

from sfumato.core.guarantee import Guarantee
from sfumato.core.score import Score

_PERCENT = {"accuracy", "balanced-accuracy", "rate"}
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
}
THREATS = {
    "utility": (
        "Utility",
        "What others can still do: a classifier reads the allowed label from the release. "
        "The baseline always guesses the most frequent class; the control reads the raw record.",
    ),
    "reconstruction": (
        "Reconstruction",
        "An adversary who holds other records of the same kind learns to turn the release back into the record. "
        "The baseline always answers the mean record; the control attacks a release with no defence.",
    ),
    "attribute": (
        "Attribute",
        "An adversary learns to read a private label from the release. Advantage is how much better it does "
        "than a guesser who does not see the release.",
    ),
    "reidentification": (
        "Re-identification",
        "An adversary says which known record a released one belongs to; the rate is how often that is right.",
    ),
    "information": (
        "Mutual information",
        "How many nats the release and a label share: an estimate without an attacker, so it ranks nothing and bounds "
        "nothing. The baseline is the estimate for shuffled labels, the error that chance alone makes.",
    ),
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


def metric_name(metric: str) -> str:
    return _METRICS.get(metric, metric)


def parameter_name(name: str) -> str:
    return _GREEK.get(name, name)


def threat_name(key: str) -> str:
    """ "attribute:sex" as "Attribute (sex)"."""
    threat, _, target = key.partition(":")
    name = THREATS[threat][0] if threat in THREATS else threat
    return f"{name} ({target})" if target else name


def explanation(threat: str) -> str:
    """One sentence or two on what a threat means."""
    return THREATS[threat][1] if threat in THREATS else f"Attacks of the kind “{threat}”."


def direction(score: Score) -> str:
    return f"{score.better_for_owner} is better for the owner"


def count(amount: int, noun: str) -> str:
    """ "1 run", "2,000 records"."""
    return f"{amount:,} {noun}" if amount == 1 else f"{amount:,} {noun}s"


def listed(names: list[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "none"


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
        return f"Probability of the right guess: {guarantee.anonymity:.3g}. No ε can be stated."
    return "No ε can be stated: what is known is what the attacks measured."


def _significant(value: float) -> str:
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    if exponent < -6:
        return f"{value:.1e}"
    return f"{value:.{max(0, 2 - exponent)}f}" if exponent < 3 else f"{value:,.0f}"
