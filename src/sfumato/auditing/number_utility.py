"""Utility of a label that is a number: how much of it a receiver's regression explains."""

from __future__ import annotations

import numpy as np

from sfumato.attacks.attribute.number_attack import MAE, R2, measure_regression
from sfumato.attacks.base import Measured
from sfumato.auditing.controls import Values
from sfumato.core.dataset import Dataset
from sfumato.core.metrics import Values as Numbers
from sfumato.core.score import Score

FRESH_NUMBER = "fresh regression"
OWN_NUMBER = "own regression"


def number_scores(
    task: str, label: str, guess: Numbers, victim: Dataset, seconds: float, control: Values, *, primary: bool = True
) -> list[Score]:
    """R², which ranks if ``primary``, and the mean absolute error of numbers (N,) in the label's unit.

    The baseline is the victims' own mean (R² = 0) and, for the absolute error, their median.
    """
    truth, people = victim.numbers(label), len(np.unique(victim.ids))
    baseline = {R2: 0.0, MAE: float(np.abs(truth - np.median(truth)).mean())}

    def score(m: Measured) -> Score:
        return Score(
            attack=task,
            threat="utility",
            metric=m.metric,
            better_for_owner=m.better_for_owner,
            value=m.value,
            ci=m.ci,
            baseline=baseline[m.metric],
            control=control.get(m.metric),
            n=len(victim),
            seconds=round(seconds, 3),
            primary=primary and m.primary,
            target=label,
            limits=m.limits,
            people=people,
            each=m.each,
            whose=victim.ids,
        )

    return [score(m) for m in measure_regression(truth, guess, victim, better_for_owner="higher")]
