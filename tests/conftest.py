"""Small real data for every test: a few hundred of the embedded digits."""

from __future__ import annotations

import fcntl
import os
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("SFUMATO_STATE", tempfile.mkdtemp(prefix="sfumato-state-"))  # no key in the user's home

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from sfumato.core.dataset import Dataset, Splits
from sfumato.core.schema import Schema
from sfumato.data import load_splits
from sfumato.mechanisms import load_mechanism, mechanism_class
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.synth.methods import mixture
from sfumato.testing import parity_digits

torch.set_num_threads(1)
# Drawn pictures cost no privacy, only time: a tenth of them is enough to see that `mixture` learns.
mixture._LOOKED_AT, mixture._PICTURED = 1_000, 1_500


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one file go to one worker, which then makes what they share once; files with slow tests come first, so
    that no worker is left alone with one of them at the end."""
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        marked = item.get_closest_marker("xdist_group")
        if marked is None:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
        groups.setdefault(item.path.stem if marked is None else marked.args[0], []).append(item)
    slow = {name for name, group in groups.items() if any(item.get_closest_marker("slow") for item in group)}
    items[:] = [item for name in sorted(groups, key=lambda name: name not in slow) for item in groups[name]]


@pytest.fixture(scope="session")
def digits() -> Splits:
    """1,500 digits: label ``digit`` may be used, ``ge5`` is private (and follows from it)."""
    return load_splits("digits", utility=["digit"], private=["ge5"], limit=1500, seed=0)


@pytest.fixture(scope="session")
def small_digits() -> Splits:
    """The same with pictures of 14×14: what is promised of a picture does not hang on its size, the time does."""
    digits = load_splits("digits", utility=["digit"], private=["ge5"], limit=1500, seed=0)
    schema = replace(digits.schema, shape=(1, 14, 14))

    def halved(data: Dataset) -> Dataset:
        return replace(data, x=data.x.reshape(-1, 1, 14, 2, 14, 2).mean((3, 5)).astype(np.float32), schema=schema)

    return replace(digits, **{name: halved(part) for name, part in digits.parts.items()})


@pytest.fixture(scope="session")
def parity() -> Splits:
    """1,500 digits: label ``odd`` may be used, ``ge5`` is private and does not follow from it."""
    return parity_digits()


class Fitted(dict[str, Mechanism]):
    """Mechanisms by name, each fitted once for all workers of a session: few epochs or steps, one small autoencoder."""

    few: ClassVar[dict[str, Any]] = {"epochs": 6, "steps": 400}
    more: ClassVar[dict[str, dict[str, Any]]] = {
        "vae": {"epochs": 20},
        "vfae": {"epochs": 40},
        "synth": {"epsilon": 5.0, "steps": 10},
    }

    def __init__(self, folder: Path, owner: Dataset) -> None:
        super().__init__()
        self.folder, self.owner = folder, owner

    def __missing__(self, name: str) -> Mechanism:
        with (self.folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            run = self.folder / name
            if not (run / "done").exists():
                cls = mechanism_class(name)
                wanted = self.few | self.more.get(name, {})
                if "base" in cls.parameters():
                    self["vae"]  # fits it
                    wanted = {**wanted, "base": str(self.folder / "vae")}
                cls(**{key: wanted[key] for key in wanted if key in cls.parameters()}).fit(self.owner).save(run)
                (run / "done").touch()
        self[name] = load_mechanism(run)
        return self[name]


@pytest.fixture(scope="session")
def fitted(parity: Splits, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Fitted:
    """``fitted[name]``: any mechanism, fitted on the first use."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "fitted"
    folder.mkdir(exist_ok=True)
    return Fitted(folder, parity.owner)


@pytest.fixture
def tiny() -> Dataset:
    """Forty 16×16 records with two classes that differ in brightness."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    x = (rng.random((40, 1, 16, 16)) * 0.5 + 0.5 * y[:, None, None, None]).astype(np.float32)
    schema = Schema("image", (1, 16, 16), utility={"bright": ("no", "yes")}, private={"third": ("a", "b", "c")})
    labels: dict[str, Any] = {"utility": {"bright": y}, "private": {"third": np.arange(40) % 3}}
    return Dataset(x, schema, name="tiny", **labels)
