"""``leace`` takes out what a linear reader could learn, as little as that takes, and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import sklearn.covariance
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from sfumato.core.dataset import Dataset, FloatArray, IntArray
from sfumato.core.errors import DataError
from sfumato.core.schema import Column, Schema
from sfumato.mechanisms.base import FitWarning
from sfumato.mechanisms.baselines.concept_erasure import LEACE, Eraser
from sfumato.workflow import UNAUDITED, fit_run, release_run, resolve


def people(x: FloatArray, y: IntArray, classes: int = 2) -> Dataset:
    columns = tuple(Column(f"v_{i}", "numeric") for i in range(x.shape[1]))
    names = tuple("abcdef"[:classes])
    schema = Schema("table", x.shape[1:], utility={"u": ("a", "b")}, private={"y": names}, columns=columns)
    return Dataset(x.clip(0, 1).astype(np.float32), schema, utility={"u": np.arange(len(x)) % 2}, private={"y": y})


@pytest.fixture(scope="module")
def straight() -> Dataset:
    """Three classes along two directions of ten, all of them mixed."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 2000)
    raw = rng.normal(size=(2000, 10))
    raw[:, :2] += 3.0 * np.eye(3)[y][:, :2]
    mixed = raw @ rng.normal(size=(10, 10))
    return people(0.5 + 0.02 * mixed, y, classes=3)


def area(x: FloatArray, y: IntArray, model: object) -> float:
    half = len(x) // 2
    read = model.fit(x[:half], y[:half]).predict_proba(x[half:])  # type: ignore[attr-defined]
    return float(roc_auc_score(y[half:], read[:, 1] if read.shape[1] == 2 else read, multi_class="ovr"))


def test_no_linear_function_of_the_erased_records_tells_the_label(straight: Dataset) -> None:
    fitted = LEACE().fit(straight)
    erased = fitted.release(straight).payload.astype(np.float64)
    shared = np.eye(3)[straight.private["y"]]
    covariance = (erased - erased.mean(0)).T @ (shared - shared.mean(0)) / len(erased)
    assert np.abs(covariance).max() < 1e-5
    reader = LogisticRegression(max_iter=500)
    assert area(straight.x / straight.x.std(), straight.private["y"], reader) > 0.9
    assert area(erased / erased.std(), straight.private["y"], reader) < 0.56


def test_as_few_directions_change_as_the_label_has_classes_less_one(straight: Dataset) -> None:
    fitted = LEACE().fit(straight)
    moved = fitted.release(straight).payload - straight.x
    assert np.linalg.matrix_rank(moved, tol=1e-3) == 2
    assert abs(moved.mean(0)).max() < 1e-5  # the mean stays


def test_our_closed_form_is_the_authors(straight: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the covariance as it is: each side shrinks it by a rule of its own."""
    theirs = pytest.importorskip("concept_erasure").LeaceFitter
    monkeypatch.setattr(sklearn.covariance, "ledoit_wolf", lambda x, assume_centered: (x.T @ x / len(x), 0.0))
    x = torch.as_tensor(straight.x)
    z = torch.nn.functional.one_hot(torch.as_tensor(straight.private["y"]), 3).float()
    expected = theirs.fit(x.double(), z.double(), shrinkage=False, constrain_cov_trace=False).eraser(x.double())
    eraser = Eraser(10, 3)
    eraser.learn(x, z)
    assert torch.allclose(eraser(x).double(), expected, atol=1e-4)


def test_what_is_not_linear_stays_readable() -> None:
    """The label is in the spread of two numbers, not in their mean: the threat that the docs name."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1500)
    x = 0.5 + (0.03 + 0.09 * y[:, None]) * rng.normal(size=(1500, 4))
    data = people(x, y)
    erased = LEACE().fit(data).release(data).payload
    assert area(erased, y, LogisticRegression()) < 0.6
    assert area(erased, y, HistGradientBoostingClassifier(max_iter=40)) > 0.9


def test_it_needs_a_private_label_to_learn_and_none_to_release(straight: Dataset) -> None:
    fitted = LEACE().fit(straight)
    assert fitted.transform(straight.x[:3]).shape == (3, 10)
    schema = Schema("table", (10,), columns=straight.schema.columns)
    with pytest.raises(DataError, match="name one with --private"):
        LEACE().fit(Dataset(straight.x, schema))


def test_records_wider_than_a_covariance_can_be_learnt_are_refused(straight: Dataset) -> None:
    with pytest.raises(DataError, match="more than widest=5"):
        LEACE(widest=5).fit(straight)


def test_a_table_with_categories_is_warned_about(parity_table: Dataset) -> None:
    """Whoever lacks a rare category has what was read of the label in its column."""
    with pytest.warns(FitWarning, match="made for vectors"):
        fitted = LEACE().fit(parity_table)
    common = parity_table.take(slice(1, None))  # nobody in it has the rare category
    column = fitted.release(common).payload[:, 6].astype(np.float64)
    assert np.ptp(common.x[:, 6]) == 0
    assert abs(roc_auc_score(common.private["y"], column) - 0.5) > 0.4


@pytest.fixture
def parity_table() -> Dataset:
    """Four numbers that tell the label, and three categories, of which one person alone has the last."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    numbers = (0.5 + 0.1 * (2 * y[:, None] - 1) + 0.06 * rng.normal(size=(600, 4))).clip(0, 1)
    jobs = np.eye(3)[np.r_[2, rng.integers(0, 2, 599)]]
    columns = (*(Column(f"n{i}", "numeric") for i in range(4)), Column("job", "categorical", ("a", "b", "c")))
    schema = Schema("table", (7,), utility={"u": ("a", "b")}, private={"y": ("a", "b")}, columns=columns)
    x = np.concatenate([numbers, jobs], axis=1).astype(np.float32)
    return Dataset(x, schema, utility={"u": np.arange(600) % 2}, private={"y": y})


def test_vectors_leave_in_their_own_form_and_units(straight: Dataset, tmp_path: Path) -> None:
    vectors = (straight.x * 40 - 30).astype(np.float32)
    np.savez(tmp_path / "v.npz", v=vectors, y=straight.private["y"])
    fit_run(
        resolve("leace", {"source": str(tmp_path / "v.npz"), "x": ["v"], "private": ["y"]}, {}, seed=0), tmp_path / "r"
    )
    release_run(tmp_path / "r", str(tmp_path / "v.npz"), tmp_path / "out", warrant=UNAUDITED)
    released = np.stack(pq.read_table(tmp_path / "out" / "release.parquet")["v"].to_pylist())
    assert released.shape == vectors.shape
    moved = released - vectors
    assert np.linalg.matrix_rank(moved, tol=0.5) == 2
    assert np.abs(moved.mean(0)).max() < 0.3
