"""Small real data for every test: a few hundred of the embedded digits."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from typing import Any

import numpy as np
import pytest
import torch

from sfumato.core.dataset import Dataset, Splits
from sfumato.core.schema import Schema
from sfumato.data import load_splits
from sfumato.mechanisms import mechanism_class, names
from sfumato.mechanisms.base import Mechanism

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def digits() -> Splits:
    """1,500 digits: label ``digit`` may be used, ``ge5`` is private."""
    return load_splits("digits", utility=["digit"], private=["ge5"], limit=1500, seed=0)


@pytest.fixture(scope="session")
def fitted(digits: Splits) -> dict[str, Mechanism]:
    """Every mechanism, fitted once with its defaults."""
    return {name: mechanism_class(name)(epochs=6).fit(digits.owner) for name in names()}


@pytest.fixture
def tiny() -> Dataset:
    """Forty 16×16 records with two classes that differ in brightness."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    x = (rng.random((40, 1, 16, 16)) * 0.5 + 0.5 * y[:, None, None, None]).astype(np.float32)
    schema = Schema("image", (1, 16, 16), utility={"bright": ("no", "yes")}, private={"third": ("a", "b", "c")})
    labels: dict[str, Any] = {"utility": {"bright": y}, "private": {"third": np.arange(40) % 3}}
    return Dataset(x, schema, name="tiny", **labels)
