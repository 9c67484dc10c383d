"""Hiding and reading cost a device little beside its own layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.interleaved import Ratio, interleaved, threads
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


def run(small: bool = False) -> dict[str, Any]:
    """Interleaved rounds of the layers on the device and of everything else that it does, one thread, 128 records."""
    with threads(1):
        shares = {d: _compare(d, 10 if small else ROUNDS) for d in (2, 4)}
    return {
        "claim": f"grouping, keys, turning and turning back cost ≤ {TARGET:.0%} of the layers on the device at d = 2",
        "holds": shares[2]["all of it"].median <= TARGET,
        "ratios": {
            f"{way} over the device's layers, d = {d}": ratio.to_json()
            | ({"at most": TARGET} if (d, way) == (2, "all of it") else {})
            for d, each in shares.items()
            for way, ratio in each.items()
        },
    }


def _compare(d: int, rounds: int) -> dict[str, Ratio]:
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
    ways: dict[str, Callable[[], object]] = {
        "layers": layers,
        "all of it": rest,
        "layers again": layers,
        "hashing records": lambda: Origin(x).contents,
        "drawing keys": lambda: draw_keys(Secure(), RECORDS, d, reflections=True),
        "keys and turning": lambda: hide(features, rows, Secure(), reflections=True),
        "turning back": lambda: turn(answers, known, back=True),
    }
    found = interleaved(ways, rounds)
    return {way: found.ratio(way, ("layers", "layers again")) for way in ways if not way.startswith("layers")}
