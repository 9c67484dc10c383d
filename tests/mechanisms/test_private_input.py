"""A mechanism may read the private labels of its own records: they are asked for, checked, and never leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from plugged import plug
from sfumato.core.dataset import FloatArray, IntArray, Splits
from sfumato.core.errors import DataError, UsageError
from sfumato.core.randomness import Randomness
from sfumato.core.traits import Traits
from sfumato.mechanisms import load_mechanism
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.baselines.raw_records import Noisy
from sfumato.testing import TINY, MechanismConformance
from sfumato.workflow import UNAUDITED, audit_run, fit_run, release_run, resolve


class Shifted(Noisy):
    """Noise, and a shift that tells the private labels: a leak that the audit must find."""

    name = "shifted"

    @property
    def traits(self) -> Traits:
        return replace(super().traits, reads_private=True)

    def _release(self, x: FloatArray, private: Mapping[str, IntArray], randomness: Randomness) -> FloatArray:
        shift = sum(private.values()).astype(np.float32)
        return super()._release(x, private, randomness) + 0.3 * shift[:, None, None, None]


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    plug(monkeypatch, "mechanisms", "shifted", f"{__name__}:Shifted")


@pytest.fixture(scope="module")
def shifted(parity: Splits) -> Mechanism:
    return Shifted(epochs=6).fit(parity.owner)


class TestRegisteredMechanism(MechanismConformance):
    @pytest.fixture
    def make(self) -> Callable[..., Mechanism]:
        return lambda **params: Shifted(**{"epochs": 1, "batch": 64, **params})

    @pytest.fixture
    def fitted(self, shifted: Mechanism) -> Mechanism:
        return shifted


def test_the_label_of_each_record_shapes_its_payload(shifted: Mechanism, parity: Splits) -> None:
    few = parity.victim.take(slice(0, 20))
    flipped = {"ge5": 1 - few.private["ge5"], "unneeded": np.zeros(3)}
    change = shifted.transform(few.x, private=flipped, seed=0) - shifted.release(few, seed=0).payload
    expected = np.where(few.private["ge5"] == 1, -0.3, 0.3)
    np.testing.assert_allclose(change.mean(axis=(1, 2, 3)), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("codes", "error", "said"),
    [
        (None, UsageError, r"shifted needs the private label 'ge5'.*give transform\(X, private={'ge5': codes}\)"),
        ([0, 1, 0], DataError, r"private label 'ge5' has shape \(3,\) for 4 records"),
        ([[0], [1], [0], [1]], DataError, r"shape \(4, 1\) for 4 records"),
        (
            [0, 1, 2, 0],
            DataError,
            r"record 2 has 2 as private label 'ge5': give a whole number from 0 to 1 \(no, yes\)",
        ),
        ([0, 1, 1, -1], DataError, "record 3 has -1"),
        ([0.0, 1.0, 0.5, 0.0], DataError, "record 0 has 0.0"),
        (["no", "yes", "no", "no"], DataError, "record 0 has 'no'"),
    ],
)
def test_missing_or_wrong_label_is_named(
    shifted: Mechanism, parity: Splits, codes: Any, error: type[Exception], said: str
) -> None:
    private = None if codes is None else {"ge5": codes}
    with pytest.raises(error, match=said):
        shifted.transform(parity.victim.x[:4], private=private)


def test_fit_without_a_private_label_or_with_one_class_is_refused(parity: Splits) -> None:
    bare = replace(parity.owner, private={}, schema=replace(parity.schema, private={}))
    with pytest.raises(DataError, match=r"shifted reads a private label .* name one with --private"):
        Shifted().fit(bare)
    low = parity.owner.take(np.flatnonzero(parity.owner.private["ge5"] == 0))
    with pytest.raises(DataError, match="'ge5' has one class only"):
        Shifted().fit(low)


def test_run_is_fitted_released_and_audited_with_its_private_labels(parity: Splits, tmp_path: Path) -> None:
    data = {"source": "digits", "utility": ["odd"], "private": ["ge5"], "limit": 300}
    run = tmp_path / "run"
    fit_run(resolve("shifted", data, {"epochs": 1, "noise": 0.1}, seed=0), run)
    assert load_mechanism(run).traits.reads_private

    some = parity.victim.take(slice(None, None, 5))
    pixels = (some.x * 255).astype(np.uint8)[:, 0]
    np.savez(
        tmp_path / "new.npz", image=pixels, label=some.utility["odd"] + 4 * some.private["ge5"] + some.private["ge5"]
    )
    np.savez(tmp_path / "bare.npz", image=pixels)
    release_run(run, str(tmp_path / "new.npz"), tmp_path / "out", warrant=UNAUDITED)
    table = pq.read_table(tmp_path / "out" / "release.parquet")
    assert table.column_names == ["payload"]
    darkness = np.array([min(row) for row in table["payload"].to_pylist()])
    brighter = some.private["ge5"] == 1
    assert darkness[brighter].mean() > darkness[~brighter].mean() + 0.2
    with pytest.raises(DataError, match="label 'ge5' is missing"):
        release_run(run, str(tmp_path / "bare.npz"), tmp_path / "refused", warrant=UNAUDITED)
    assert not (tmp_path / "refused").exists()

    scores = audit_run(run, effort=TINY)
    leak = scores["worst"]["attribute:ge5"]
    assert leak["value"] > leak["control"] > 0
    assert scores["confusion"]["ge5"]["attack"] == leak["attack"]
    assert scores["worst"]["reidentification"]["value"] > 0.5
