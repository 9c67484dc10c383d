"""Whoever made the encoder: what a party sends of a record has no more signal than its width and ε allow."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from torch import nn

from sfumato.core.dataset import Dataset, FloatArray, Splits
from sfumato.mechanisms.ars.mechanism import ARS, Published
from sfumato.mechanisms.ars.party import SharingParty
from sfumato.mechanisms.ars.published_encoder import public_schema

WIDTH = 64


def untrained(data: Dataset, **params: Any) -> Published:
    """An encoder that was hardly trained: it keeps of a record whatever fits into its width."""
    return ARS(latent=WIDTH, epochs=1, rate=1e-5, strength=0.0, **params).fit(data).publish()


def scaled(published: Published, factor: float) -> Published:
    """The same encoder with the variance of its last layer times a factor, as a hostile initiator publishes it."""
    last = [name for name in published.tensors if name.endswith("running_var")][-1]
    return replace(published, tensors={**published.tensors, last: published.tensors[last] * np.float32(factor)})


@pytest.fixture(scope="module")
def plain(parity: Splits) -> Published:
    return untrained(parity.owner)


def error_of_reader(published: Published, splits: Splits) -> float:
    """The squared error of somebody who holds the encoder and fits a linear reader on releases of records of their own.

    As a share of the error of the mean record.
    """
    member = ARS.join(published, splits.attacker)
    own, seen = (member.transform(part.x, seed=place) for place, part in enumerate((splits.attacker, splits.victim)))
    records, truth = (flat(part.x) for part in (splits.attacker, splits.victim))
    guess = Ridge(alpha=own.shape[1]).fit(own, records).predict(seen)
    return float(np.mean((guess - truth) ** 2) / np.mean((truth - records.mean(axis=0)) ** 2))


def flat(x: FloatArray) -> FloatArray:
    return x.reshape(len(x), -1)


def test_an_initiator_that_scales_its_encoder_up_reads_no_more(plain: Published, parity: Splits) -> None:
    honest = error_of_reader(plain, parity)
    for factor in (1e-10, 1e-3):
        assert error_of_reader(scaled(plain, factor), parity) > 0.96 * honest


def test_at_equal_signal_many_numbers_say_no_more_than_few(plain: Published, parity: Splits) -> None:
    wide = untrained(parity.owner, keep=4096)
    same = math.sqrt(4096 / WIDTH)  # h / ε² as for WIDTH numbers with ε = 1
    quiet, loud = (error_of_reader(replace(wide, params={**wide.params, "epsilon": e}), parity) for e in (same, 1.0))
    assert loud < 0.75 < 0.96 * error_of_reader(plain, parity) < quiet


@settings(max_examples=25, deadline=None)
@given(
    factors=st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=8),
    seed=st.integers(0, 2**32 - 1),
)
def test_whatever_the_weights_are_every_record_stays_inside_the_ball(
    factors: list[float], seed: int, plain: Published, parity: Splits
) -> None:
    rng = np.random.default_rng(seed)
    with np.errstate(over="ignore"):
        tensors = {
            name: np.nan_to_num(values * np.float32(rng.choice(factors))) if values.dtype.kind == "f" else values
            for name, values in plain.tensors.items()
        }
    member = ARS.join(replace(plain, tensors=tensors), parity.victim)
    latents = member.parties_[0].latents(parity.victim.x[:50])
    assert np.isfinite(latents).all()
    assert np.linalg.norm(latents.astype(np.float64), axis=1).max() <= math.sqrt(WIDTH) * (1 + 1e-5)


def test_the_signal_of_every_record_in_a_release_is_at_most_width_over_epsilon_squared(
    plain: Published, parity: Splits
) -> None:
    loud = scaled(replace(plain, params={**plain.params, "epsilon": 0.5}), 1e-10)
    x = parity.victim.x
    member = ARS.join(loud, parity.victim)
    noise = member.transform(x, seed=3) - member.parties_[0].latents(x)
    assert noise.std() == pytest.approx(0.5, rel=0.02)
    signal = (member.parties_[0].latents(x) ** 2).sum(axis=1) / 0.5**2
    assert signal.max() <= WIDTH / 0.5**2 * (1 + 1e-5)


def test_the_same_weights_for_records_that_are_scaled_otherwise_have_other_noise() -> None:
    """Two equations for latent and noise: their difference held no noise at all."""
    rng = np.random.default_rng(0)
    x, labels = rng.random((200, 3)).astype(np.float32), {"y": rng.integers(0, 2, 200)}
    one = Dataset.from_arrays(x, utility=labels)
    one = replace(one, contents=one.origin.contents)
    columns = tuple(replace(column, high=1.01) for column in one.schema.columns)
    two = replace(one, x=x / np.float32(1.01), schema=replace(one.schema, columns=columns))
    published = untrained(one)
    other = replace(published, schema=public_schema(two.schema))
    first, second = (
        ARS.join(encoder, data).hold_secret(bytes(32)).release(data).payload
        for encoder, data in ((published, one), (other, two))
    )
    assert (first - second).std() > 1.2


def test_the_last_bits_of_a_number_tell_no_more_than_the_noise_lets_through() -> None:
    """Sums of floats have the finer of two grids only near 0, which told 0.7 bits of a number instead of ½."""
    rng = np.random.default_rng(0)
    levels = np.array([-2.0, -1.0, 0.0, 1.0, 2.0], np.float32) / np.float32(math.sqrt(16 / 18))  # a mean square of 1
    chosen = rng.choice(5, size=(4000, WIDTH), p=np.array([1, 4, 8, 4, 1]) / 18)
    nonces = rng.integers(0, 256, (4000, 16), dtype=np.uint8)
    sent = SharingParty(nn.Identity()).hardened(levels[chosen], nonces, bytes(32), 1.0)
    fraction, exponent = np.frexp(sent.astype(np.float64))
    whole = (np.abs(fraction) * 2**24).astype(np.int64)
    last = exponent + np.log2((whole & -whole).clip(1)).astype(np.int64)
    assert 0.47 < told(np.floor(4 * sent), chosen) < 0.505
    assert told(np.floor(4 * sent) * 100 + last.clip(-9, 20), chosen) < 0.505


def told(seen: np.ndarray, chosen: np.ndarray) -> float:
    """Bits that what is seen tells of what was chosen, without the bias of a finite count."""
    _, place = np.unique(seen, return_inverse=True)
    counts = np.zeros((place.max() + 1, 5))
    np.add.at(counts, (place.ravel(), chosen.ravel()), 1)
    joint = counts / counts.sum()
    alone = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    bias = place.max() * 4 / (2 * math.log(2) * counts.sum())
    return float((joint * np.log2(np.where(joint > 0, joint, alone) / alone)).sum() - bias)
