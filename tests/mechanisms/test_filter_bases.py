"""A filter stands on whatever serves the data, says what its base lost before it is trained, and stores no code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from sfumato.auditing import audit
from sfumato.core.dataset import Dataset, Splits
from sfumato.core.errors import DataError, UsageError
from sfumato.core.run_folder import RunFolder, read_json
from sfumato.core.schema import Column, Schema
from sfumato.mechanisms import load_mechanism
from sfumato.mechanisms.base import FitWarning
from sfumato.mechanisms.baselines.concept_erasure import LEACE
from sfumato.mechanisms.baselines.gaussian_noise import Gaussian
from sfumato.mechanisms.baselines.plain_features import DNN
from sfumato.mechanisms.filter.base_probe import kept_by
from sfumato.mechanisms.filter.bases import default_base, made
from sfumato.mechanisms.filter.fixed_encoder import SPREAD, FixedEncoder
from sfumato.mechanisms.filter.mechanism import Filter, LinearFilter
from sfumato.mechanisms.filter.vae import VAE
from sfumato.testing.attacks import TINY

QUICK = {"steps": 50, "batch": 128}


def vectors(count: int = 900, size: int = 40, loud: int = 20) -> Dataset:
    """Vectors with much noise in ``loud`` numbers, a private label in one quiet number and a useful one in another."""
    rng = np.random.default_rng(0)
    y, u = rng.integers(0, 2, count), rng.integers(0, 2, count)
    x = 0.5 + 0.01 * rng.normal(size=(count, size))
    x[:, :loud] += 0.1 * rng.normal(size=(count, loud))
    x[:, -1] += 0.04 * (2 * u - 1)
    x[:, -2] += 0.04 * (2 * y - 1)
    columns = tuple(Column(f"v_{i}", "numeric") for i in range(size))
    schema = Schema("table", (size,), utility={"u": ("a", "b")}, private={"y": ("a", "b")}, columns=columns)
    return Dataset(x.clip(0, 1).astype(np.float32), schema, utility={"u": u}, private={"y": y})


@pytest.fixture(scope="module")
def owner() -> Dataset:
    return vectors()


class Half(nn.Module):
    """Somebody's own encoder: the last half of a vector, through one layer."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layer = nn.Linear(20, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.layer(x[:, 20:]))


@pytest.mark.parametrize(
    ("kind", "shape", "categories", "records", "base"),
    [
        ("table", (14,), 0, 5000, "raw"),
        ("table", (384,), 0, 5000, "pca"),
        ("table", (106,), 1, 5000, "vae"),
        ("table", (106,), 1, 300, "pca"),
        ("table", (900,), 1, 5000, "pca"),
        ("image", (1, 28, 28), 0, 3000, "vae"),
        ("image", (1, 28, 28), 0, 200, "pca"),
        ("image", (3, 64, 64), 0, 600, "pca"),
        ("image", (3, 64, 64), 0, 60_000, "vae"),
        ("signal", (9, 128), 0, 5000, "pca"),
    ],
)
def test_the_base_goes_by_kind_and_size_of_the_data(
    kind: str, shape: tuple[int, ...], categories: int, records: int, base: str
) -> None:
    columns = (Column("age", "numeric"), *(Column("job", "categorical", ("a", "b")),) * categories)
    assert default_base(Schema(kind, shape, columns=columns), records) == base  # type: ignore[arg-type]


@pytest.mark.parametrize("base", ["pca", "raw"])
def test_a_base_by_name_is_made_and_stored_with_the_filter(base: str, owner: Dataset, tmp_path: Path) -> None:
    fitted = Filter(base=base, components=30, **QUICK).fit(owner)
    fitted.save(tmp_path)
    again = load_mechanism(tmp_path)
    assert (again.release(owner, seed=1).payload == fitted.release(owner, seed=1).payload).all()
    assert again.get_params() == fitted.get_params()
    assert not list(tmp_path.rglob("*.pkl")) + list(tmp_path.rglob("*.pt"))
    decoded = fitted.decode(fitted.release(owner, seed=1).payload)
    assert decoded.shape == owner.x.shape and decoded.min() >= 0 and decoded.max() <= 1


def test_latents_of_a_fixed_encoder_have_one_scale_and_one_spread(owner: Dataset) -> None:
    for name in ("pca", "raw"):
        base = made(name, owner, 0, 12)  # type: ignore[arg-type]
        mean, variance = base.posterior(owner.x)
        assert mean.mean(0).abs().max() < 1e-3
        assert mean.std(0).max() < 1.01  # numbers that hardly vary are not blown up to 1
        assert (variance == SPREAD**2).all()


def test_components_are_those_of_the_records_and_lead_back(owner: Dataset) -> None:
    base = made("pca", owner, 0, 40)
    found = base.decode(base.posterior(owner.x)[0].numpy())
    assert np.abs(found - owner.x).max() < 1e-3
    few = made("pca", owner.take(slice(0, 30)), 0, 64)  # fewer records than numbers
    assert few.latent == 29
    assert np.abs(few.decode(few.posterior(owner.x[:30])[0].numpy()) - owner.x[:30]).max() < 0.01


def test_an_encoder_of_ones_own_is_stored_as_weights_and_given_again(owner: Dataset, tmp_path: Path) -> None:
    fitted = Filter(base=Half(seed=3), **QUICK).fit(owner)
    fitted.save(tmp_path)
    assert read_json(tmp_path / "base" / "fixed.json")["kind"] == "module"
    with pytest.raises(UsageError, match=r"your own network, of which only the weights are stored \(Half"):
        load_mechanism(tmp_path)
    again = Filter.load(tmp_path, base=Half(seed=9))  # its form; the weights come from the file
    assert (again.release(owner, seed=1).payload == fitted.release(owner, seed=1).payload).all()
    with pytest.raises(DataError, match="do not fit the base"):
        Filter.load(tmp_path, base=nn.Sequential(nn.Linear(40, 12)))


def test_a_base_without_a_way_back_decodes_nothing_and_is_audited_all_the_same(owner: Dataset) -> None:
    with pytest.raises(UsageError, match="takes a base with a way back"):
        Filter(base=Half(), output="data", **QUICK).fit(owner)
    parts = [owner.take(slice(a, b)) for a, b in ((0, 300), (300, 600), (600, 900))]
    fitted = LinearFilter(base=Half(), **QUICK).fit(parts[0])
    assert fitted.decode(fitted.release(owner, seed=1).payload) is None
    found = audit(fitted, Splits(*parts), effort=replace(TINY, threats=("attribute",)))
    assert "attribute:y" in found.worst and "decoded" not in found.gallery


def test_a_second_fit_makes_its_base_anew(owner: Dataset) -> None:
    mine = LinearFilter(base="pca", components=30, **QUICK).fit(owner)
    first = mine.base_.digest
    assert mine.fit(owner.take(slice(0, 400))).base_.digest != first


def test_an_encoder_that_does_not_take_the_records_is_named(owner: Dataset) -> None:
    with pytest.raises(UsageError, match=r"cannot take records of shape \(40,\)"):
        Filter(base=nn.Linear(7, 3), **QUICK).fit(owner)


def test_a_fitted_run_is_a_base(parity: Splits, tmp_path: Path) -> None:
    dnn = DNN(epochs=1).fit(parity.owner)
    dnn.save(tmp_path / "dnn")
    RunFolder.create(tmp_path / "run", {})
    direct = Filter(base=dnn, **QUICK).fit(parity.owner)
    by_path = Filter(base=str(tmp_path / "dnn"), **QUICK).fit(parity.owner)
    assert isinstance(direct.base_, FixedEncoder)
    few = parity.victim.take(slice(0, 20))
    assert (direct.release(few, seed=1).payload == by_path.release(few, seed=1).payload).all()
    by_path.save(tmp_path / "mine")
    (tmp_path / "dnn").rename(tmp_path / "gone")  # the encoder went with the filter
    assert (load_mechanism(tmp_path / "mine").release(few, seed=1).digest) == by_path.release(few, seed=1).digest


def test_a_run_without_a_public_encoder_is_no_base(parity: Splits) -> None:
    from sfumato.mechanisms.baselines.raw_records import Undefended

    with pytest.raises(UsageError, match="none has no public encoder"):
        Filter(base=Undefended(epochs=1).fit(parity.owner), **QUICK).fit(parity.owner)


def test_erased_vectors_can_be_filtered(owner: Dataset) -> None:
    fitted = LinearFilter(base=LEACE().fit(owner), **QUICK).fit(owner)
    assert fitted.base_.latent == 40


def test_gaussian_noise_stands_on_any_base_too(owner: Dataset) -> None:
    assert Gaussian(base="pca", components=30).fit(owner).release(owner, seed=0).payload.shape == (900, 30)


def test_a_base_that_lost_the_utility_is_refused_before_the_filter_is_trained(owner: Dataset, tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", {"run": {"mechanism": "filter"}})
    with pytest.raises(UsageError, match=r"'u' is read from the records with an AUROC of 1.000.*the base lost it"):
        Filter(base="pca", components=3, **QUICK).fit(owner, run=run)
    assert not run.progress_file.exists()


def test_a_base_that_lost_a_part_of_the_utility_is_reported(owner: Dataset) -> None:
    class Noisy(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.stack([x[:, -1] + 0.5 * x[:, 0], x[:, 1]], dim=1)

    said: list[str] = []
    fitted = Filter(base=Noisy(), **QUICK).fit(owner, warn=said.append)
    assert len(said) == 1 and "cannot serve it better" in said[0]
    assert fitted.kept_ is not None and fitted.kept_.difference[0] > 0.02
    with pytest.warns(FitWarning, match="cannot serve it better"):
        Filter(base=Noisy(), **QUICK).fit(owner)


def test_a_base_that_keeps_the_utility_is_not_mentioned(owner: Dataset) -> None:
    said: list[str] = []
    fitted = Filter(**QUICK).fit(owner, warn=said.append)
    assert said == []
    assert fitted.kept_ is not None and fitted.kept_.base > 0.99


def test_records_that_tell_nothing_are_no_fault_of_the_base(owner: Dataset) -> None:
    random = replace(owner, utility={"u": np.random.default_rng(1).integers(0, 2, len(owner))})
    kept = kept_by(made("pca", random, 0, 3), random, 0)
    assert kept is not None and not kept.nothing and not kept.lost


def test_an_unknown_base_is_explained(owner: Dataset, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="one of vae, pca, raw"):
        Filter(base=str(tmp_path / "nowhere"), **QUICK).fit(owner)
    with pytest.raises(UsageError, match="not fitted"):
        Filter(base=VAE(), **QUICK).fit(owner)
