"""Hiding and reading cost a device little beside its own layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.interleaved import Ratio, interleaved, threads
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


def run(small: bool = False) -> dict[str, Any]:
    """Interleaved rounds of the layers on the device and of everything else that it does, one thread, 128 records."""
    with threads(1):
        shares = {d: _compare(d, 10 if small else ROUNDS) for d in (2, 4)}
    return {
        "claim": f"grouping, keys, turning and turning back cost ≤ {TARGET:.0%} of the layers on the device at d = 2",
        "holds": shares[2].median <= TARGET,
        "ratios": {
            "hiding over the device's layers, d = 2": {**shares[2].to_json(), "at most": TARGET},
            "hiding over the device's layers, d = 4": shares[4].to_json(),
        },
    }


def _compare(d: int, rounds: int) -> Ratio:
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

    ways = {"layers": layers, "hiding": rest, "layers again": layers}
    return interleaved(ways, rounds).ratio("hiding", ("layers", "layers again"))
