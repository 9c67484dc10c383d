"""``phase`` beside computing on ciphertexts and on secret shares: a digit read by somebody who must not see it."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from benchmarks.against import Against
from benchmarks.interleaved import Ratio, figure, threads
from benchmarks.peers.environments import environment
from sfumato.core.dataset import Dataset
from sfumato.data import load_splits
from sfumato.mechanisms.phase.mechanism import Phase
from sfumato.studies.peers import run_apart

PEERS: Mapping[str, tuple[str, str, int, float]] = {
    "tenseal": ("TenSEAL, CKKS", "tenseal_runner.py", 200, 900.0),
    "crypten": ("CrypTen, two parties", "crypten_runner.py", 200, 900.0),
    "concrete-ml": ("Concrete ML, TFHE", "concrete_runner.py", 3, 1800.0),
}
"""Name, runner, records on ciphertexts, and limit in seconds."""
HIDDEN = 32
NOTE = (
    "cryptography hides the record from everybody without the key. phase at d = 2 leaves the cloud 1/2 in which of two "
    "rows is the record, under conditions, so the ratio is the price of a stronger promise. Theirs is a perceptron "
    f"784–{HIDDEN}–10 with squares for activations, ours is LeNet; ours goes in batches, theirs record by record."
)


def run(small: bool = False) -> dict[str, Any]:
    """Embedded digits; seconds and bytes a record, both ways, with hiding and reading; one thread."""
    splits = load_splits("digits", utility=["digit"], private=[], limit=800 if small else None, seed=0)
    with threads(1):
        ours = _phase(splits.owner, splits.victim, epochs=1 if small else 6)
        network, plain = _perceptron(splits.owner, splits.victim, epochs=3 if small else 30)
    against: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    figures: dict[str, Any] = {"phase": ours, "perceptron in clear, accuracy": figure(plain)}
    for name in ("tenseal",) if small else PEERS:
        title, runner, records, limit = PEERS[name]
        found = _theirs(name, runner, network, splits.victim, 3 if small else records, limit)
        if isinstance(found, str):
            missing[title] = found
            continue
        figures[title] = {key: value for key, value in found.items() if key != "seconds"}
        task = "a digit read without seeing it"
        tested = found.get("tested", found["records"])
        each = [ours["seconds"] / one for one in found["seconds"]]
        seconds = statistics.median(found["seconds"])
        sent, right = found["up"] + found["down"], found["right"] / tested
        against += [
            Against(title, task, "seconds a record", ours["seconds"], seconds, Ratio.of(each), note=NOTE).to_json(),
            Against.once(title, task, "bytes a record, both ways", ours["bytes"], sent).to_json(),
            Against.shares(
                title, task, "accuracy", ours["accuracy"], right, counts=(len(splits.victim), tested)
            ).to_json(),
        ]
    return {"claim": None, "holds": None, "against": against, "figures": figures, "peers without a figure": missing}


def _phase(owner: Dataset, victims: Dataset, epochs: int) -> dict[str, float]:
    """The whole way: hide, compute, read back; company drawn afresh, as no device's secret is at hand."""
    phase = Phase("lenet", d=2, keyed=False, epochs=epochs).fit(owner)
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        scores = phase.answer(victims)
        seconds.append((time.perf_counter() - started) / len(victims))
    sent = phase.opened(victims, seed=0).payload
    with torch.inference_mode():
        answered = phase.cloud_(torch.from_numpy(sent[:2])).numel() * 4 / 2
    return {
        "seconds": figure(statistics.median(seconds)),
        "bytes": sent.nbytes / len(victims) + answered,
        "accuracy": figure(float((scores.argmax(1) == victims.label("digit")).mean())),
    }


def _perceptron(owner: Dataset, victims: Dataset, epochs: int) -> tuple[dict[str, Any], float]:
    """Weights of the peers' network, trained in clear, and its accuracy."""
    torch.manual_seed(0)
    x, y = torch.from_numpy(owner.x.reshape(len(owner), -1)), torch.from_numpy(owner.label("digit"))
    first, second = torch.nn.Linear(x.shape[1], HIDDEN), torch.nn.Linear(HIDDEN, 10)
    optimiser = torch.optim.Adam([*first.parameters(), *second.parameters()], 1e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(64):
            optimiser.zero_grad()
            F.cross_entropy(second(first(x[rows]).square()), y[rows]).backward()
            optimiser.step()
    with torch.inference_mode():
        seen = torch.from_numpy(victims.x.reshape(len(victims), -1))
        right = (second(first(seen).square()).argmax(1).numpy() == victims.label("digit")).mean()
    weights = {"w1": first.weight, "b1": first.bias, "w2": second.weight, "b2": second.bias}
    return {name: value.detach().numpy() for name, value in weights.items()} | {"calibration": x[:500].numpy()}, float(
        right
    )


def _theirs(
    name: str, runner: str, network: dict[str, Any], victims: Dataset, records: int, limit: float
) -> dict[str, Any] | str:
    """What the peer reported, or why it did not."""
    try:
        python = environment(name)
    except (OSError, subprocess.SubprocessError) as error:
        said = [line for line in (getattr(error, "stderr", None) or str(error)).splitlines() if line.strip()]
        return f"does not install: {said[-1].strip()[:200] if said else 'no reason given'}"
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        np.savez(work / "arrays.npz", x=victims.x.reshape(len(victims), -1), y=victims.label("digit"), **network)
        job = {"arrays": str(work / "arrays.npz"), "report": str(work / "report.json"), "records": records}
        (work / "job.json").write_text(json.dumps(job))
        print(f"  {name}", file=sys.stderr)
        script = Path(__file__).parent / "peers" / runner
        failed = run_apart([str(python), str(script), str(work / "job.json")], work, limit)
        if failed is not None:
            return failed
        return dict(json.loads((work / "report.json").read_text()))
