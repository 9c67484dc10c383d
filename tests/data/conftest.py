"""Small files of every kind, made on the spot."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from data_samples import image_cells, png, table_columns, write


@pytest.fixture(autouse=True)
def _no_outside_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tests never read or write the user's own data; those that want it ask for ``real_data``."""
    monkeypatch.delenv("SFUMATO_DATA", raising=False)
    monkeypatch.setenv("SFUMATO_CACHE", str(tmp_path / "cache"))


_REAL = os.environ.get("SFUMATO_DATA")


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    if not _REAL or not Path(_REAL).is_dir():
        pytest.skip("SFUMATO_DATA does not point at a folder of data sets")
    monkeypatch.setenv("SFUMATO_DATA", _REAL)
    return Path(_REAL)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A table of 60 people."""
    return write(tmp_path / "people.parquet", **table_columns())


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """40 grey 8×8 images with a label."""
    rng = np.random.default_rng(0)
    images = [png(rng.integers(0, 256, (8, 8))) for _ in range(40)]
    return write(tmp_path / "pictures.parquet", image=image_cells(images), label=pa.array(np.arange(40) % 4))
