"""Runs one peer in its own environment: ``python runner.py JOB.json``. It imports nothing of sfumato.

The job names the peer, its budget, the table to learn (CSV) and where the drawn table and the seconds go. ``texts`` are
the categorical columns of the table; all others are numbers.
"""

from __future__ import annotations

import json
import math
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


def opendp(table: Any, job: dict[str, Any]) -> Any:
    """A model of OpenDP's over all columns, with the codes that occur for its keys: those it is told for nothing."""
    dp, polars = import_module("opendp.prelude"), import_module("polars")
    dp.enable_features("contrib")
    names = list(table.columns)
    frame = polars.DataFrame({name: polars.Series(table[name].tolist()) for name in names})
    keys = {name: sorted(set(table[name])) for name in names}
    rho = rho_of(job["epsilon"], job["settings"]["delta"])
    context = dp.Context.compositor(
        data=frame.lazy(), privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=rho, delta=0.0),
        split_evenly_over=1,
    )  # fmt: skip
    model = getattr(dp.mbi, job["model"])()
    drawn = context.query().select(names).contingency_table(keys=keys, algorithm=model).release()
    found = drawn.synthesize(rows=job["rows"])
    found = found.collect() if hasattr(found, "collect") else found
    return {name: found[name].to_list() for name in names}


def rho_of(epsilon: float, delta: float) -> float:
    """The largest ρ whose concentrated differential privacy gives (ε, δ) (Canonne, Kamath and Steinke 2020)."""

    def spent(rho: float) -> float:
        """log δ at ε, the least over the order α."""
        orders = [1 + 10 ** (step / 50) for step in range(-100, 250)]
        return min(
            (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)
            for alpha in orders
        )

    low, high = 0.0, epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) <= math.log(delta) else (low, middle)
    return low


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
    drawn = {"smartnoise": smartnoise, "opendp": opendp, "ctgan": ctgan}[job["package"]](table, job)
    seconds = time.perf_counter() - started
    pandas.DataFrame(drawn, columns=list(table.columns)).to_csv(job["out"], index=False)
    Path(job["report"]).write_text(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
