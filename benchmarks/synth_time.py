"""How long a synthetic MNIST takes: learning the model under its budget, drawing, and a student's training."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

from sfumato import load
from sfumato.auditing import CPU
from sfumato.auditing.students import CNN, fit_student
from sfumato.core.errors import SfumatoError
from sfumato.mechanisms.synth.mechanism import Synth

DRAWING, WHOLE = 60.0, 600.0
"""Seconds that a synthetic set of the size of MNIST may take, and that everything together may."""
EPSILON = 3.45


def run(small: bool = False) -> dict[str, Any]:
    """All 60,000 training records, all threads; the student is the usual one of pictures."""
    claim = f"60,000 records are drawn in ≤ {DRAWING:g} s; learning, drawing and a student take ≤ {WHOLE / 60:g} min"
    try:
        train, test = (
            load("mnist", utility="digit", private=(), part=part, limit=2000 if small else None)
            for part in ("train", "test")
        )
    except SfumatoError as error:
        return {"claim": claim, "holds": None, "skipped": str(error)}
    times = [time.perf_counter()]
    mechanism = Synth(epsilon=EPSILON).fit(train)
    times.append(time.perf_counter())
    drawn = mechanism.sample(len(train))
    times.append(time.perf_counter())
    guess = fit_student(CNN, drawn.x, drawn.utility["digit"], 10, CPU.task_epochs, CPU.student_width, 0)
    times.append(time.perf_counter())
    learning, drawing, student = (after - before for before, after in pairwise(times))
    correct = float((guess(test.x).argmax(axis=1) == test.utility["digit"]).mean())
    return {
        "claim": claim,
        "figures": {
            "seconds": {"learning": round(learning, 1), "drawing": round(drawing, 1), "student": round(student, 1)},
            "student's accuracy": round(correct, 4),
        },
        "holds": drawing <= DRAWING and learning + drawing + student <= WHOLE,
    }
