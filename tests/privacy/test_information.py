"""Mutual information against distributions whose information is known."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import digamma
from scipy.stats import norm

from sfumato.core.errors import DataError, UsageError
from sfumato.core.intervals import mean_interval
from sfumato.privacy.mutual_information import information, mutual_information

Sample = tuple[np.ndarray, np.ndarray]


def two_bells(rng: np.random.Generator, n: int, apart: float, d: int = 1) -> Sample:
    """Two equal classes at ±apart of the first axis, spread 1 in every direction."""
    y = rng.integers(0, 2, n)
    x = rng.normal(size=(n, d))
    x[:, 0] += apart * (2 * y - 1)
    return x, y


def information_of_two_bells(apart: float) -> float:
    def integrand(x: float) -> float:
        here, there = norm.pdf(x, apart), norm.pdf(x, -apart)
        return float(here * np.log(here / ((here + there) / 2)))

    return float(quad(integrand, -apart - 8, apart + 8)[0])


def by_hand(x: np.ndarray, y: np.ndarray, k: int, *, printed: bool = False) -> np.ndarray:
    """The definition with an N×N table; ``printed`` is the paper's log(n + 1), for points without ties."""
    distance = np.abs(x[:, None] - x[None]).max(axis=2)
    terms = []
    for i, row in enumerate(distance):
        same = y == y[i]
        radius = np.sort(row[same])[min(k, same.sum() - 1)]
        near = (row <= radius) & ((np.arange(len(x)) != i) | (radius == 0))
        inside, n = (near & same).sum(), near.sum()
        taken = math.log(n + 1) + math.log(same.sum()) if printed else digamma(n) + digamma(same.sum())
        terms.append(digamma(inside) + math.log(len(x)) - taken)
    return np.array(terms)


@pytest.mark.parametrize("labels", [2, 5])
@pytest.mark.parametrize("d", [1, 4])
def test_independent_labels_share_nothing(labels: int, d: int) -> None:
    rng = np.random.default_rng(0)
    terms = mutual_information(rng.normal(size=(1500, d)), rng.integers(0, labels, 1500))
    assert abs(terms.mean()) < 0.04


def test_separated_clusters_give_the_whole_entropy_of_the_label() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [200, 300, 500])
    x = 100.0 * y[:, None] + rng.normal(size=(1000, 3))
    share = np.array([0.2, 0.3, 0.5])
    assert mutual_information(x, y).mean() == pytest.approx(-(share * np.log(share)).sum(), abs=0.01)


@pytest.mark.parametrize("apart", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("d", [1, 3])
def test_two_bells_have_the_information_of_the_integral(apart: float, d: int) -> None:
    x, y = two_bells(np.random.default_rng(1), 2000, apart, d)
    assert mutual_information(x, y).mean() == pytest.approx(information_of_two_bells(apart), abs=0.04)


def test_noisy_bit_has_the_information_of_the_binary_channel() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 3000)
    y = x ^ (rng.random(3000) < 0.1)
    truth = math.log(2) + 0.1 * math.log(0.1) + 0.9 * math.log(0.9)
    assert mutual_information(x[:, None], y).mean() == pytest.approx(truth, abs=0.04)


def test_overlapping_uniforms_have_their_information() -> None:
    """Gao et al., experiment I: the label m is uniform on 0 … 4, the point uniform on [m, m + 2]."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 3000)
    truth = math.log(5) - 4 * math.log(2) / 5
    assert mutual_information((y + 2 * rng.random(3000))[:, None], y).mean() == pytest.approx(truth, abs=0.04)


def test_mixture_of_atoms_and_a_density_has_its_information() -> None:
    """An erasure channel: the point is the label itself, or with probability 0.4 uniform on [2, 3]."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    x = np.where(rng.random(3000) < 0.4, 2 + rng.random(3000), y)
    assert mutual_information(x[:, None], y).mean() == pytest.approx(0.6 * math.log(2), abs=0.03)


@pytest.mark.parametrize("grid", [0.0, 1.0, 0.5])
@pytest.mark.parametrize("k", [1, 5, 40])
def test_trees_find_what_the_full_table_finds_with_and_without_ties(grid: float, k: int) -> None:
    x, y = two_bells(np.random.default_rng(2), 120, 0.7, 2)
    y[:30] = 2  # one label has fewer records than k = 40 neighbours
    if grid:
        x = np.round(x / grid) * grid
    assert mutual_information(x, y, neighbours=k) == pytest.approx(by_hand(x, y, k), rel=1e-12)


def test_printed_form_is_too_low_however_many_records() -> None:
    for n in (400, 1600):
        rng = np.random.default_rng(0)
        free, bound = two_bells(rng, n, 0.0), two_bells(rng, n, 8.0)
        assert by_hand(*free, 5, printed=True).mean() < -0.12
        assert by_hand(*bound, 5, printed=True).mean() < math.log(2) - 0.25
        assert abs(mutual_information(*free).mean()) < 0.05
        assert mutual_information(*bound).mean() == pytest.approx(math.log(2), abs=0.01)


def test_ten_thousand_records_need_no_table_of_all_pairs() -> None:
    x, y = two_bells(np.random.default_rng(0), 10_000, 1.0, 10)
    tracemalloc.start()
    try:
        terms = mutual_information(x, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert terms.shape == (10_000,)
    assert peak < 10 * x.nbytes  # all pairs would be 1,000 times as much


@pytest.mark.parametrize("apart", [0.0, 0.5, 1.0])
def test_interval_holds_the_truth_about_as_often_as_it_says(apart: float) -> None:
    rng, truth, times = np.random.default_rng(0), information_of_two_bells(apart) if apart else 0.0, 200
    held = 0
    for _ in range(times):
        low, high = information(*two_bells(rng, 400, apart))[1]
        held += low <= truth <= high
    assert held / times >= 0.88


def test_interval_holds_the_truth_where_subjects_repeat() -> None:
    """Forty subjects with ten records each, one label a subject: the subject's offset is part of the spread."""
    rng, truth, times = np.random.default_rng(0), information_of_two_bells(1.0), 40
    held = naive = 0
    for _ in range(times):
        label = rng.integers(0, 2, 40)
        centre = rng.normal(size=40) * 0.7 + (2 * label - 1)
        ids = np.repeat(np.arange(40), 10)
        x = (centre[ids] + rng.normal(size=400) * math.sqrt(1 - 0.7**2))[:, None]
        low, high = information(x, label[ids], ids)[1]
        held += low <= truth <= high
        low, high = information(x, label[ids])[1]
        naive += low <= truth <= high
    assert held / times >= 0.9
    assert naive < held


def test_interval_is_wider_than_the_terms_alone_would_have_it() -> None:
    """Records share neighbours: the terms of independent labels vary together."""
    rng = np.random.default_rng(0)
    ours, terms = [], []
    for _ in range(20):
        x, y = two_bells(rng, 300, 0.0)
        low, high = information(x, y)[1]
        ours.append(high - low)
        low, high = mean_interval(mutual_information(x, y))
        terms.append(high - low)
    assert np.mean(ours) > 1.1 * np.mean(terms)


def test_estimate_and_interval_are_repeatable_and_not_clipped() -> None:
    x, y = two_bells(np.random.default_rng(3), 300, 0.0)
    estimate, (low, high) = information(x, y)
    assert (estimate, (low, high)) == information(x, y, np.zeros(300))
    assert low < 0 < high and low < estimate < high


def test_unusable_samples_are_refused() -> None:
    x, y = two_bells(np.random.default_rng(0), 60, 1.0)
    with pytest.raises(UsageError, match="neighbours must be at least 1, got 0"):
        mutual_information(x, y, neighbours=0)
    with pytest.raises(UsageError, match=r"points \(60,\)"):
        mutual_information(x[:, 0], y)
    with pytest.raises(UsageError, match=r"labels \(59,\)"):
        mutual_information(x, y[1:])
    with pytest.raises(DataError, match="finite"):
        mutual_information(np.full((60, 1), np.nan), y)
    with pytest.raises(DataError, match="label 9 has one record"):
        mutual_information(x, np.concatenate([y[1:], [9]]))
    with pytest.raises(DataError, match="30 records are too few"):
        information(x[:30], y[:30])
    with pytest.raises(UsageError, match="60 records and 3 ids"):
        information(x, y, np.arange(3))
