"""Autoencoders: shapes of the papers' tables, binary columns and back, the Lipschitz penalty."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from sfumato.core.schema import Column
from sfumato.mechanisms.filter.binary_columns import BINS, BinaryColumns
from sfumato.mechanisms.filter.vae_networks import AUTOENCODERS, kl_to_prior, lipschitz_excess, posterior

COLUMNS = (
    Column("age", "numeric", nullable=True),
    Column("job", "categorical", categories=("a", "b", "c")),
    Column("gain", "numeric"),
)


def records(n: int, seed: int) -> np.ndarray:  # type: ignore[type-arg]
    rng = np.random.default_rng(seed)
    age, missing = rng.random(n), rng.random(n) < 0.1
    gain = np.where(rng.random(n) < 0.9, 0.0, rng.random(n))
    job = np.eye(3)[rng.integers(0, 3, n)]
    return np.column_stack([np.where(missing, 0, age), missing, job, gain]).astype(np.float32)


@pytest.mark.parametrize(("name", "shape"), [("mlp", (1, 28, 28)), ("conv", (3, 64, 64)), ("densenet", (3, 32, 32))])
def test_an_autoencoder_gives_two_numbers_a_latent_and_the_record_back(name: str, shape: tuple[int, ...]) -> None:
    encoder, decoder = AUTOENCODERS[name](shape, 7)
    assert encoder(torch.rand(3, *shape)).shape == (3, 14)
    assert decoder(torch.randn(3, 7)).shape == (3, *shape)


def test_densenet_has_the_layers_of_table_5() -> None:
    encoder, _ = AUTOENCODERS["densenet"]((3, 64, 64), 50)
    convolutions = [m for m in encoder.modules() if isinstance(m, nn.Conv2d)]
    assert len(convolutions) == 1 + 3 * 13 * 2 + 3
    assert sum(isinstance(m, nn.AvgPool2d) for m in encoder.modules()) == 3


def test_mlp_has_the_layers_of_the_paper() -> None:
    encoder, decoder = AUTOENCODERS["mlp"]((1, 28, 28), 10)
    sizes = [(m.in_features, m.out_features) for m in encoder.modules() if isinstance(m, nn.Linear)]
    assert sizes == [(784, 300), (300, 300), (300, 20)]
    assert [m.out_features for m in decoder.modules() if isinstance(m, nn.Linear)] == [300, 300, 784]


def test_kl_to_the_prior_is_torchs() -> None:
    mean, variance = torch.randn(5, 3), torch.rand(5, 3) + 0.1
    ours = kl_to_prior(mean, variance)
    theirs = torch.distributions.kl_divergence(
        torch.distributions.Normal(mean, variance.sqrt()), torch.distributions.Normal(0.0, 1.0)
    ).sum(1)
    assert torch.allclose(ours, theirs, atol=1e-5)


def test_posterior_never_vanishes() -> None:
    _, variance = posterior(torch.full((2, 6), -100.0))
    assert (variance > 0).all()


def test_a_steep_decoder_is_penalised_and_a_flat_one_is_not() -> None:
    flat, steep = nn.Linear(3, 4), nn.Linear(3, 4)
    with torch.no_grad():
        flat.weight.mul_(0.01)
        steep.weight.mul_(100.0)
        steep.bias.zero_()
    mean, variance = torch.zeros(64, 3), torch.full((64, 3), 1e-4)
    assert lipschitz_excess(flat, mean, variance, 1.0).item() == 0.0
    assert lipschitz_excess(steep, mean, variance, 1.0).item() > 0.1


@given(seed=st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_a_binary_row_gives_its_record_back(seed: int) -> None:
    x = records(400, seed)
    columns = BinaryColumns(COLUMNS)
    columns.learn(x)
    binary = columns(torch.from_numpy(x))
    assert binary.shape == (400, columns.size) == (400, 2 * BINS + 1 + 3)
    assert set(binary.unique().tolist()) <= {0.0, 1.0}
    back = columns.records(binary * 2 - 1).numpy()
    assert (back[:, 1:5] == x[:, 1:5]).all()  # flag and category exactly
    assert np.abs(back[:, 0] - x[:, 0]).max() < 0.25  # a number: its bin's mean
    assert (back[x[:, 5] == 0, 5] == 0).all()  # the value of nine in ten has a bin of its own
    assert np.abs(back[:, 5] - x[:, 5]).mean() < 0.05


def test_few_distinct_values_are_kept_exactly() -> None:
    x = np.array([[0.0], [0.5], [1.0]] * 20, dtype=np.float32)
    columns = BinaryColumns((Column("stars", "numeric"),))
    columns.learn(x)
    assert (columns.records(columns(torch.from_numpy(x))).numpy() == x).all()
