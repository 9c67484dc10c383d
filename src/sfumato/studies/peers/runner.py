"""Runs one peer in its own environment: ``python runner.py JOB.json``. It imports nothing of sfumato.

The job names the peer, its budget, the table to learn (CSV) and where the drawn table and the seconds go. ``texts`` are
the categorical columns of the table; all others are numbers.
"""

from __future__ import annotations

import json
import random
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any


def smartnoise(table: Any, job: dict[str, Any]) -> Any:
    """A synthesizer of SmartNoise with the library's own settings."""
    model = import_module("snsynth").Synthesizer.create(job["model"], epsilon=job["epsilon"], **job["settings"])
    numbers = [name for name in table.columns if name not in job["texts"]]
    model.fit(table, categorical_columns=job["texts"], continuous_columns=numbers, preprocessor_eps=0.0)
    return model.sample(job["rows"])


def ctgan(table: Any, job: dict[str, Any]) -> Any:
    """CTGAN, without any privacy: what a GAN reaches with the records at hand."""
    model = import_module("ctgan").CTGAN(**job["settings"])
    model.fit(table, discrete_columns=job["texts"])
    return model.sample(job["rows"])


def main(path: Path) -> None:
    job = json.loads(path.read_text())
    pandas, numpy = import_module("pandas"), import_module("numpy")
    random.seed(job["seed"])
    numpy.random.seed(job["seed"])
    table = pandas.read_csv(job["train"], dtype=dict.fromkeys(job["texts"], str), keep_default_na=False)
    started = time.perf_counter()
    drawn = {"smartnoise": smartnoise, "ctgan": ctgan}[job["package"]](table, job)
    seconds = time.perf_counter() - started
    pandas.DataFrame(drawn, columns=list(table.columns)).to_csv(job["out"], index=False)
    Path(job["report"]).write_text(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
