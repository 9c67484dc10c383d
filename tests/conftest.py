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
from sfumato.mechanisms.filter.vae import VAE

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def digits() -> Splits:
    """1,500 digits: label ``digit`` may be used, ``ge5`` is private (and follows from it)."""
    return load_splits("digits", utility=["digit"], private=["ge5"], limit=1500, seed=0)


@pytest.fixture(scope="session")
def parity() -> Splits:
    """1,500 digits: label ``odd`` may be used, ``ge5`` is private and does not follow from it."""
    return load_splits("digits", utility=["odd"], private=["ge5"], limit=1500, seed=0)


@pytest.fixture(scope="session")
def fitted(parity: Splits) -> dict[str, Mechanism]:
    """Every mechanism, fitted once: few epochs or steps, and one small autoencoder for all that build on one."""
    few: dict[str, Any] = {"epochs": 6, "steps": 400, "base": VAE(epochs=6).fit(parity.owner)}
    more: dict[str, dict[str, Any]] = {"vfae": {"epochs": 40}, "synth": {"epsilon": 5.0, "steps": 10}}
    fitted = {}
    for name in names():
        wanted = few | more.get(name, {})
        cls = mechanism_class(name)
        fitted[name] = cls(**{key: wanted[key] for key in wanted if key in cls.parameters()}).fit(parity.owner)
    return fitted


@pytest.fixture
def tiny() -> Dataset:
    """Forty 16×16 records with two classes that differ in brightness."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    x = (rng.random((40, 1, 16, 16)) * 0.5 + 0.5 * y[:, None, None, None]).astype(np.float32)
    schema = Schema("image", (1, 16, 16), utility={"bright": ("no", "yes")}, private={"third": ("a", "b", "c")})
    labels: dict[str, Any] = {"utility": {"bright": y}, "private": {"third": np.arange(40) % 3}}
    return Dataset(x, schema, name="tiny", **labels)
