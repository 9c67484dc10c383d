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
from sfumato.mechanisms.phase.keys import draw_keys, hide, turn
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

    with arrangement.of(x, Origin(x), Secure()) as seats:
        rows = seats.rows.copy()
    _, known = hide(features, rows, Secure(), reflections=True)
    parts: dict[str, Callable[[], object]] = {
        "hashing records": lambda: Origin(x).contents,
        "drawing keys": lambda: draw_keys(Secure(), RECORDS, d, reflections=True),
        "keys and turning": lambda: hide(features, rows, Secure(), reflections=True),
        "turning back": lambda: turn(answers, known, back=True),
    }
    ratios: list[float] = []
    shares: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(ROUNDS):
        first, hiding, second = (_seconds(work) for work in (layers, rest, layers))
        unit = (first + second) / 2
        ratios.append(hiding / unit)
        for name, part in parts.items():
            shares[name].append(_seconds(part) / unit)
    quartiles = statistics.quantiles(ratios, n=4)
    return {
        "share": round(statistics.median(ratios), 3),
        "quartiles": [round(q, 3) for q in quartiles],
        "of which": {name: round(statistics.median(each), 3) for name, each in shares.items()},
    }


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
