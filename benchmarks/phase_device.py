"""Hiding and reading cost a device little beside its own layers."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from sfumato.core.origin import Origin
from sfumato.core.randomness import Secure
from sfumato.data import load_splits
from sfumato.mechanisms.phase.arrangement import Arrangement
from sfumato.mechanisms.phase.companies import Companies
from sfumato.mechanisms.phase.keys import hide, turn
from sfumato.mechanisms.phase.mechanism import Phase
from sfumato.nets.training_loop import as_tensor, forward_in_batches

TARGET = 0.10
RECORDS, ROUNDS = 128, 60


def run() -> dict[str, Any]:
    """Interleaved rounds of the layers on the device and of everything else that it does, one thread, 128 records."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    measured = {f"d = {d}": _compare(d) for d in (2, 4)}
    torch.set_num_threads(before)
    return {
        "claim": f"grouping, keys, turning and turning back cost ≤ {TARGET:.0%} of the layers on the device at d = 2",
        **measured,
        "target": TARGET,
        "holds": measured["d = 2"]["share"] <= TARGET,
    }


def _compare(d: int) -> dict[str, Any]:
    splits = load_splits("digits", utility=["digit"], limit=1000)
    phase = Phase("lenet", d=d, epochs=1).fit(splits.owner)
    x = np.tile(splits.owner.x, (RECORDS // len(splits.owner) + 1, 1, 1, 1))[:RECORDS]
    features = forward_in_batches(phase.encoder_, as_tensor(x)).numpy()
    answers = forward_in_batches(phase.cloud_, as_tensor(phase.transform(x))).numpy()
    plain = np.ascontiguousarray(answers[:, 0])

    arrangement = Arrangement(d, phase.schema_, Companies(bytes(32)))

    def layers() -> None:
        forward_in_batches(phase.encoder_, as_tensor(x))
        forward_in_batches(phase.decoder_, as_tensor(plain))

    def rest() -> None:
        with arrangement.of(x, Origin(x), Secure()) as seats:
            _, keys = hide(features, seats.rows, Secure(), reflections=True)
        turn(answers, keys, back=True)

    ratios = []
    for _ in range(ROUNDS):
        first, hiding, second = (_seconds(work) for work in (layers, rest, layers))
        ratios.append(hiding / ((first + second) / 2))
    quartiles = statistics.quantiles(ratios, n=4)
    return {"share": round(statistics.median(ratios), 3), "quartiles": [round(q, 3) for q in quartiles]}


def _seconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
