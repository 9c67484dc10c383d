"""``ars`` beside federated averaging on the same parties at the same precision: accuracy, bytes and seconds."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.against import Against
from benchmarks.interleaved import Ratio
from sfumato.core.errors import SfumatoError
from sfumato.parties import fedavg, simulate
from sfumato.parties.results import read_right
from sfumato.studies.ars_bytes import Step, bytes_ratio, steps_of

PARTIES, EACH, ROUNDS = 5, 500, 8
WIRES = {"float32": 32, "uint8": 8}
NOTE = "FedAvg hides no record and shares no data; ars shares representations once. Study ars-table1 has more settings."


def run(small: bool = False) -> dict[str, Any]:
    """Embedded digits, five parties, both on Flower's simulation engine; bytes are of whole messages, both ways."""
    common: dict[str, Any] = {"parties": 2 if small else PARTIES, "utility": ["digit"], "private": [], "seed": 0}
    common |= {"each": 150 if small else EACH}
    against, skipped = [], {}
    for wire, bits in (("uint8", 8),) if small else WIRES.items():
        with tempfile.TemporaryDirectory() as name:
            home = Path(name)
            try:
                theirs = fedavg("digits", rounds=2 if small else ROUNDS, wire=wire, out=home / "fedavg", **common)
                few = {"epochs": 2} if small else {}
                ours = simulate("digits", params=few, wire=wire, out=home / "ars", **common)
            except SfumatoError as error:
                skipped[f"FedAvg on Flower, {bits} bits"] = str(error)
                continue
            steps = steps_of(theirs, home / "fedavg")
            mine = Step(ours.bytes_up + ours.bytes_down, read_right(home / "ars"))
            ratio, (low, high) = bytes_ratio(mine, steps)
        peer, task = f"FedAvg on Flower, {bits} bits", f"{common['parties']} parties learn digits together"
        bytes_ = Ratio(ratio, (min(low, high), max(low, high)), 1)
        against += [
            Against.once(peer, task, "MB, all rounds", mine.bytes / 1e6, steps[-1].bytes / 1e6, note=NOTE).to_json(),
            Against(
                peer, task, "MB to the same accuracy", mine.bytes / 1e6, mine.bytes / 1e6 / ratio, bytes_
            ).to_json(),
            Against.shares(
                peer,
                task,
                "accuracy",
                float(mine.right.mean()),
                float(steps[-1].right.mean()),
                counts=(len(mine.right), len(steps[-1].right)),
            ).to_json(),
            Against.once(peer, task, "seconds", ours.seconds, theirs.seconds).to_json(),
        ]
    if not against:
        return {"claim": None, "holds": None, "skipped": next(iter(skipped.values()))}
    return {"claim": None, "holds": None, "against": against, "peers without a figure": skipped}
