"""The hardened encoder is trained for the tasks from the record on, not from an autoencoder's latent on."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from sfumato.core.dataset import Dataset
from sfumato.core.schema import Column, Schema
from sfumato.mechanisms.ars.mechanism import ARS, Variant

ENTRIES = 12


def faint(records: int = 1500) -> Dataset:
    """The label is in one entry of a tenth of the others' spread: an autoencoder with three latents leaves it out."""
    rng = np.random.default_rng(0)
    income = rng.integers(0, 2, records)
    x = rng.random((records, ENTRIES)).astype(np.float32)
    x[:, 0] = 0.5 + 0.05 * (2 * income - 1) + 0.01 * rng.standard_normal(records)
    columns = tuple(Column(f"c{place}", "numeric") for place in range(ENTRIES))
    schema = Schema("table", (ENTRIES,), utility={"income": ("low", "high")}, columns=columns)
    return Dataset(x, schema, utility={"income": income}, name="faint")


def accuracy(variant: Variant, epsilon: float) -> float:
    data = faint()
    learns, asks = data.take(slice(0, 1000)), data.take(slice(1000, None))
    shared = ARS(variant=variant, epsilon=epsilon, latent=3, epochs=6, batch=32).fit(learns)
    model = LogisticRegression().fit(shared.transform(learns.x, seed=0), learns.utility["income"])
    return float(model.score(shared.transform(asks.x, seed=1), asks.utility["income"]))


def test_hardened_encoder_serves_a_task_that_an_autoencoder_leaves_out() -> None:
    assert accuracy("published", 0.0) < 0.8, "or the record is too easy for this test"
    assert accuracy("hardened", 0.3) > 0.9
