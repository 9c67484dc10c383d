"""``synth`` on NIST's excerpt of the American Community Survey by NIST's own evaluator: k-marginal score, seconds."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

from benchmarks.peers.environments import environment
from sfumato.core.dataset import Dataset
from sfumato.data import decode_table, load
from sfumato.mechanisms.synth.mechanism import Synth

GOAL, SECONDS = 988.0, 15.0
EPSILON, DELTA, SEEDS = 1.0, 1e-6, 5
AIM, MST = 976.0, 958.0
"""What NIST publishes of SmartNoise on these columns at the same ε."""
_WHOLE = ("AGEP",)
DOMAIN = files("benchmarks") / "acs_domain.toml"


def run(small: bool = False) -> dict[str, Any]:
    """Ten demographic columns, no label, all rows; a fit and as many rows as there are records, each time."""
    claim = f"k-marginal ≥ {GOAL:g} of 1000 at ε = {EPSILON:g} in ≤ {SECONDS:g} s, mean of {SEEDS} seeds"
    home = Path(os.environ.get("SFUMATO_DATA", "")) / "acs"
    source = home / "national" / "national2019.csv"
    if not source.is_file():
        return {"claim": claim, "holds": None, "skipped": "SFUMATO_DATA has no acs/national/national2019.csv"}
    try:
        python = environment("sdnist")
    except (OSError, subprocess.SubprocessError) as error:
        return {"claim": claim, "holds": None, "skipped": f"NIST's evaluator does not install: {error}"}
    data = load(source, x=_columns(), utility=[], private=[], domain=str(DOMAIN))
    scores, seconds = [], []
    for seed in range(1 if small else SEEDS):
        started = time.perf_counter()
        drawn = Synth(labels="none", epsilon=EPSILON, delta=DELTA, seed=seed).fit(data).sample(len(data), seed=seed)
        seconds.append(time.perf_counter() - started)
        with tempfile.TemporaryDirectory() as folder:
            scores.append(_score(python, drawn, home, Path(folder)))
    mean, slowest = sum(scores) / len(scores), max(seconds)
    return {
        "claim": claim,
        "figures": {
            "k-marginal of each seed": scores,
            "mean": round(mean, 1),
            "seconds of the slowest": round(slowest, 1),
            "published: AIM, MST (SmartNoise)": [AIM, MST],
        },
        "holds": mean >= GOAL and slowest <= SECONDS,
    }


def _columns() -> list[str]:
    import tomllib

    return list(tomllib.loads(DOMAIN.read_text())["columns"])


def _score(python: Path, drawn: Dataset, home: Path, folder: Path) -> float:
    """The evaluator's k-marginal score; it wants whole numbers without a point."""
    table = decode_table(drawn.x, drawn.schema).to_pandas()
    for name in _WHOLE:
        table[name] = table[name].astype(int)
    table.to_csv(folder / "synthetic.csv", index=False)
    command = [python, "-m", "sdnist.report", "synthetic.csv", "NATIONAL", "--data-root", home]
    subprocess.run([str(part) for part in command], cwd=folder, input="n\n", text=True, check=True, capture_output=True)
    (report,) = folder.glob("reports/*/report.json")
    return float(json.loads(report.read_text())["k_marginal"]["k_marginal_synopsys"]["k_marginal_score"])
