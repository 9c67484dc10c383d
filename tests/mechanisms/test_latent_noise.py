"""``latent-noise``: the encoder of ``ars`` and four simple ways to protect what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sfumato.core.dataset import Dataset, FloatArray, Splits
from sfumato.core.errors import UsageError
from sfumato.mechanisms import load_mechanism
from sfumato.mechanisms.ars.mechanism import ARS
from sfumato.mechanisms.baselines.latent_noise import LatentNoise, Way, principal
from sfumato.nets.training_loop import as_tensor, forward_in_batches

QUICK: dict[str, Any] = {"latent": 12, "epochs": 2, "batch": 64}


@pytest.fixture(scope="module")
def owner(parity: Splits) -> Dataset:
    return parity.owner.take(slice(0, 400))


@pytest.fixture(scope="module")
def base(owner: Dataset) -> LatentNoise:
    return LatentNoise(**QUICK).fit(owner)


def way(base: LatentNoise, owner: Dataset, way: Way, **params: Any) -> LatentNoise:
    """Another way on the same encoder."""
    return LatentNoise(way=way, **params, **QUICK).fit(owner, start=base)


def clean(mechanism: LatentNoise, data: Dataset) -> FloatArray:
    return forward_in_batches(mechanism.encoder_, as_tensor(data.x)).numpy()


def noise(mechanism: LatentNoise, data: Dataset, seed: int | None = 0) -> FloatArray:
    return mechanism.release(data, seed=seed).payload - clean(mechanism, data)


def test_encoder_is_the_one_that_ars_publishes(base: LatentNoise, owner: Dataset) -> None:
    shared = ARS(variant="published", **QUICK).fit(owner).publish().tensors
    own = base.encoder_.state_dict()
    assert set(own) == set(shared)
    assert all(np.array_equal(own[name].numpy(), shared[name]) for name in own)


def test_supervised_encoder_is_that_of_hardened_ars_and_serves_better(base: LatentNoise, owner: Dataset) -> None:
    longer = {**QUICK, "epochs": 10}
    served = LatentNoise(way="gaussian", learns="labels", **longer).fit(owner, start=base)  # not its encoder
    shared = ARS(variant="hardened", **QUICK).fit(owner).publish().tensors
    own = served.encoder_.state_dict()
    assert {name: tuple(own[name].shape) for name in own} == {name: shared[name].shape for name in shared}
    z = {one: clean(one, owner) for one in (base, served)}
    assert np.abs(z[served].mean(0)).max() < 0.2  # standardised, but for what the ball cuts off
    labels = next(iter(owner.utility.values()))

    def apart(values: FloatArray) -> float:
        means = np.stack([values[labels == code].mean(0) for code in np.unique(labels)])
        return float(means.var(0).mean())

    assert apart(z[served]) > 1.5 * apart(z[base])


def test_uniform_noise_fills_its_range_evenly(base: LatentNoise, owner: Dataset) -> None:
    found = noise(way(base, owner, "uniform", epsilon=0.5), owner) / 0.5
    assert np.abs(found).max() <= 1.0 + 1e-5
    counts, _ = np.histogram(found, bins=10, range=(-1.0, 1.0))
    assert np.abs(counts / found.size - 0.1).max() < 5 * 0.3 / np.sqrt(found.size)


def test_gaussian_noise_has_epsilon_for_deviation(base: LatentNoise, owner: Dataset) -> None:
    found = noise(way(base, owner, "gaussian", epsilon=2.0), owner).astype(np.float64) / 2.0
    assert abs(found.mean()) < 5 / np.sqrt(found.size)
    assert abs(found.std() - 1.0) < 5 / np.sqrt(2 * found.size)
    assert np.abs(np.corrcoef(found.T) - np.eye(12)).max() < 5 / np.sqrt(len(owner))


def test_dithered_payload_lies_on_the_grid_and_is_right_on_average(base: LatentNoise, owner: Dataset) -> None:
    dithered = way(base, owner, "dithered", epsilon=0.75)
    payload = dithered.release(owner, seed=0).payload
    assert np.allclose(payload / 0.75, np.round(payload / 0.75), atol=1e-5)
    found = noise(dithered, owner).astype(np.float64)
    assert np.abs(found).max() <= 0.75 + 1e-5
    few = owner.take(slice(0, 5))
    mean = np.mean([noise(dithered, few, seed) for seed in range(600)], axis=0)
    assert np.abs(mean).max() < 5 * 0.375 / np.sqrt(600)


def test_pca_keeps_the_directions_of_largest_variance(base: LatentNoise, owner: Dataset) -> None:
    payload = way(base, owner, "pca", keep=3).release(owner).payload.astype(np.float64)
    assert payload.shape == (len(owner), 3)
    spectrum = np.linalg.eigvalsh(np.cov(clean(base, owner).T.astype(np.float64), bias=True))[::-1]
    assert np.allclose(payload.var(axis=0), spectrum[:3], rtol=1e-3)
    assert np.abs(np.corrcoef(payload.T) - np.eye(3)).max() < 1e-3


def test_directions_are_orthonormal_and_have_a_sign_of_their_own() -> None:
    z = torch.randn(50, 6, generator=torch.Generator().manual_seed(0))
    directions = principal(z, 4)
    assert torch.allclose(directions @ directions.T, torch.eye(4), atol=1e-5)
    assert torch.allclose(principal(-z, 4), directions, atol=1e-5)


def test_pca_is_the_same_every_time_and_says_so(base: LatentNoise, owner: Dataset) -> None:
    cut = way(base, owner, "pca", keep=3)
    assert not cut.traits.randomised and base.traits.randomised
    assert (cut.release(owner).payload == cut.release(owner).payload).all()


@pytest.mark.parametrize("name", ["uniform", "gaussian", "dithered"])
def test_noise_is_fresh_for_every_release_and_every_number(name: Way, base: LatentNoise, owner: Dataset) -> None:
    mechanism = way(base, owner, name)
    assert (mechanism.release(owner).payload != mechanism.release(owner).payload).any()
    twice = owner.take(np.array([0, 0]))
    first, second = mechanism.release(twice, seed=0).payload
    assert (first != second).any()


@pytest.mark.parametrize("name", ["uniform", "gaussian", "dithered"])
def test_no_epsilon_releases_clean_latents(name: Way, base: LatentNoise, owner: Dataset) -> None:
    assert (noise(way(base, owner, name, epsilon=0.0), owner) == 0).all()


def test_public_encoder_gives_what_leaves_before_the_noise(base: LatentNoise, owner: Dataset) -> None:
    for mechanism in (base, way(base, owner, "pca", keep=3)):
        z = forward_in_batches(mechanism.public_encoder(), as_tensor(owner.x)).numpy()
        payload = mechanism.release(owner, seed=0).payload
        assert z.shape == payload.shape
        assert np.abs(z - payload).max() <= mechanism.epsilon + 1e-5


def test_stored_directions_come_back(base: LatentNoise, owner: Dataset, tmp_path: Path) -> None:
    cut = way(base, owner, "pca", keep=3)
    cut.save(tmp_path)
    again = load_mechanism(tmp_path)
    assert again.release(owner).digest == cut.release(owner).digest and not again.traits.randomised


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epsilon": -1.0}, "epsilon must lie in"),
        ({"way": "gauss"}, "did you mean 'gaussian'"),
        ({"way": "pca", "keep": 0}, "keep 1 to 64 directions"),
        ({"way": "pca", "keep": 65}, "keep 1 to 64 directions"),
    ],
)
def test_bad_parameters_are_refused(wrong: dict[str, Any], message: str, owner: Dataset) -> None:
    with pytest.raises(UsageError, match=message):
        LatentNoise(**wrong).fit(owner)
