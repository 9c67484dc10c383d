"""What bf16 saves on this machine, and what it does to figures: one mechanism and one attacker, several seeds."""

from __future__ import annotations

import statistics
import time
from typing import Any

from sfumato.attacks.reconstruction.inverse_network import InverseNetwork
from sfumato.auditing import SMOKE, audit
from sfumato.core.compute import Compute, using
from sfumato.data import load_splits
from sfumato.mechanisms.ran.mechanism import RAN

SEEDS, RECORDS, EPOCHS, WIDTH, STEPS = 3, 1_500, 3, 16, 150


def run() -> dict[str, Any]:
    """``ran`` on digits, attacked by an inverse network; the precisions take turns, as the machine is shared."""
    seconds: dict[str, list[float]] = {"fp32": [], "bf16": []}
    figures: dict[str, list[tuple[float, float]]] = {"fp32": [], "bf16": []}
    inside = 0
    for seed in range(SEEDS):
        intervals = {}
        for precision, spent in seconds.items():
            with using(Compute(precision=precision)):
                started = time.process_time()
                accuracy, error, intervals[precision] = _figures(seed)
                spent.append(time.process_time() - started)
            figures[precision].append((accuracy, error))
        low, high = intervals["fp32"]
        inside += low <= figures["bf16"][-1][1] <= high
    found: dict[str, Any] = {
        "claim": "bf16 changes the figures of a mechanism and its attacker by less than their intervals",
        "bf16 over fp32, processor time": round(
            statistics.median(b / a for a, b in zip(seconds["fp32"], seconds["bf16"], strict=True)), 2
        ),
        "accuracy": {name: round(statistics.mean(one for one, _ in each), 4) for name, each in figures.items()},
        "attacker's error": {name: round(statistics.mean(one for _, one in each), 4) for name, each in figures.items()},
        "seeds with the error inside the other's interval": f"{inside} of {SEEDS}",
    }
    found["holds"] = inside == SEEDS
    return found


def _figures(seed: int) -> tuple[float, float, tuple[float, float]]:
    """Accuracy, the attacker's error, and the interval of that."""
    splits = load_splits("digits", utility=["digit"], private=["ge5"], limit=RECORDS, seed=seed)
    attack = InverseNetwork(decoder="residual", epochs=EPOCHS, width=WIDTH, fewest_steps=STEPS)
    found = audit(RAN(epochs=EPOCHS, seed=seed).fit(splits.owner), splits, attacks=[attack], effort=SMOKE, seed=seed)
    accuracy = next(score.value for score in found.utility if score.metric == "accuracy")
    error = next(score for score in found.attacks if score.primary)
    return accuracy, error.value, error.ci


if __name__ == "__main__":
    print(run())
