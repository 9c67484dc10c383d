"""Auditors' counters keep exactly what the answers tell: held against densities, and against what is claimed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import norm

from sfumato.core.errors import RuleBroken
from sfumato.privacy.canary_listeners import Crowd, Ear, Listener, Pair
from sfumato.privacy.discrete_gaussian import RepeatableNoise
from sfumato.privacy.gaussian_mechanism import gaussian_epsilon
from sfumato.privacy.ledger import Ask, Ledger, calibrated
from sfumato.privacy.neighbouring_worlds import Answered, Twin, sampled_loss
from sfumato.privacy.query_counter import Records

COMMON = Records(torch.rand(6, 4, generator=torch.Generator().manual_seed(0)), torch.arange(6) % 2)
RECORD = Records(torch.ones(1, 4), torch.ones(1, dtype=torch.int64))


def twin(*asks: Ask, inside: bool = True, seed: int = 0, most: int | None = None) -> Twin:
    return Twin(COMMON, RECORD, Ledger(asks, 1.0, 1e-5), inside=inside, noise=RepeatableNoise(seed), most=most)


def listener(*asks: Ask, ear: Ear | None = None, seed: int = 0) -> Listener:
    ears = [] if ear is None else [ear]
    return Listener(COMMON, Ledger(asks, 1.0, 1e-5), ears, noise=RepeatableNoise(seed))


def pair(draws: int, seed: int = 100) -> Pair:
    return Pair(COMMON, RECORD, draws, RepeatableNoise(seed))


def two(noise: float = 2.0) -> tuple[Ask, Ask]:
    """A question, and one more so that the first is not the last."""
    return Ask("a", "first", 1.0, noise=noise), Ask("a", "second", 1.0, noise=1.0)


@pytest.mark.parametrize("inside", [True, False])
def test_loss_of_a_sum_is_the_ratio_of_the_answers_densities(inside: bool) -> None:
    counter = twin(*two(), inside=inside)
    answer = counter.sums("first", lambda r: r.x, 1.5, groups=lambda r: r.y, size=2)

    def density(records: torch.Tensor, codes: torch.Tensor) -> float:
        rows = records * (1.5 / records.norm(dim=1, keepdim=True).clamp(min=1.5))
        total = np.stack([rows[codes == code].sum(dim=0).numpy() for code in (0, 1)])
        return float(norm.logpdf(answer, total, 2.0 * 1.5).sum())

    joined = torch.cat([COMMON.x, RECORD.x]), torch.cat([COMMON.y, RECORD.y])
    assert counter.loss == pytest.approx(density(*joined) - density(COMMON.x, COMMON.y), abs=1e-5)


def test_loss_of_moments_counts_what_travels() -> None:
    """‖r rᵀ‖² = ‖r‖⁴ for one record: the answers' losses in D′ have mean ‖v‖²/2σ² = bound⁴/2(σ·bound²)²."""
    means = []
    for seed in range(400):
        counter = twin(*two(noise=1.0), seed=seed)
        counter.moments("first", lambda r: r.x, 1.2)
        means.append(counter.loss)
    assert np.mean(means) == pytest.approx(0.5, abs=3 / math.sqrt(400))


def test_loss_of_a_sampled_step_is_that_of_the_mixture() -> None:
    sigma, size, rate = 1.3, 0.8, 0.25
    place = np.array([-1.0, 0.2, 2.0])
    mixture = (1 - rate) * norm.pdf(place, 0.0, sigma) + rate * norm.pdf(place, size, sigma)
    told = sampled_loss(place * size, size, sigma, rate)
    assert told == pytest.approx(np.log(mixture / norm.pdf(place, 0.0, sigma)))
    whole = sampled_loss(place * size, size, sigma, 1.0)
    assert whole == pytest.approx(norm.logpdf(place, size, sigma) - norm.logpdf(place, 0.0, sigma))


def ask_five(counter: Twin | Listener, rate: float) -> None:
    with pytest.raises(Answered):
        for _ in range(5):
            if rate < 1.0:
                counter.sampled("steps", lambda r: r.x, 1.0)
            else:
                counter.sums("steps", lambda r: r.x, 1.0)


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_drawn_transcripts_are_like_whole_runs(rate: float) -> None:
    asks = (Ask("a", "steps", 1.0, count=5, rate=rate, noise=1.5),)
    drawn = pair(20_000)
    ask_five(listener(*asks, ear=drawn), rate)
    for inside, losses in ((False, drawn.without), (True, drawn.within)):
        whole = []
        for seed in range(1, 400):
            counter = twin(*asks, inside=inside, seed=seed)
            ask_five(counter, rate)
            whole.append(counter.loss)
        spread = losses.std()
        assert np.mean(whole) == pytest.approx(losses.mean(), abs=3.5 * spread / math.sqrt(len(whole)))
        assert np.std(whole) == pytest.approx(spread, rel=0.2)


def test_a_heavy_record_loses_exactly_what_the_plan_allows() -> None:
    """Losses of D′ are N(μ²/2, μ²) with μ² = Σ 1/σ² if the record fills every clip; ε of that is the claim."""
    plan = calibrated((Ask("a", "one", 1.0), Ask("b", "two", 3.0, count=2)), 1.0, 1e-5)
    drawn = pair(200_000)
    counter = listener(*plan, ear=drawn)
    with pytest.raises(Answered):
        counter.sums("one", lambda r: r.x, 1.0)
        for _ in range(2):
            counter.sums("two", lambda r: r.x[:, :1], 0.5)
    mu = drawn.within.std()
    assert gaussian_epsilon(1.0 / mu, 1e-5, 1.0) == pytest.approx(1.0, rel=0.02)
    assert drawn.within.mean() == pytest.approx(mu**2 / 2, rel=0.05)
    assert drawn.without.mean() == pytest.approx(-(mu**2) / 2, rel=0.05)


def test_a_function_that_mixes_records_shows_in_the_loss() -> None:
    """Rows that depend on how many there are: one record more moves the sum by far more than its bound."""

    def mixed(records: Records) -> torch.Tensor:
        return torch.full_like(records.x, float(len(records) % 2))

    honest, mixing = pair(1000), pair(1000)
    listener(*two(noise=1.0), ear=honest).sums("first", lambda r: r.x, 1.0)
    listener(*two(noise=1.0), ear=mixing).sums("first", mixed, 1.0)
    assert mixing.within.std() > 5 * honest.within.std()


def test_loss_of_a_response_is_the_ratio_of_its_chances() -> None:
    """η = 0.4, k = 4: kept with 0.7, another code with 0.1; a blank record gives each with 0.25."""
    asks = (Ask("labels", "codes", 1.0, noise=0.4, kind="response", size=4), Ask("a", "second", 1.0, noise=1.0))
    counter = twin(*asks)
    codes = counter.responses("codes")
    assert len(codes) == len(COMMON) + 1
    kept, other = math.log(0.7 / 0.25), math.log(0.1 / 0.25)
    assert counter.loss == pytest.approx(kept if int(codes[-1]) == 1 else other)
    drawn = pair(4000)
    assert len(listener(*asks, ear=drawn).responses("codes")) == len(COMMON)
    assert set(np.round(drawn.within, 6)) == {round(kept, 6), round(other, 6)}
    assert (drawn.within > 0).mean() == pytest.approx(0.7, abs=0.03)
    assert (drawn.without > 0).mean() == pytest.approx(0.25, abs=0.03)


def test_the_auditor_stops_a_method_when_it_has_heard_enough() -> None:
    counter = twin(*two(), most=1)
    with pytest.raises(Answered):
        counter.sums("first", lambda r: r.x, 1.0)
    assert counter.answers == 1


def test_a_method_that_looks_past_the_counter_is_refused() -> None:
    with pytest.raises(RuleBroken, match="past the counter"):
        twin(*two()).bypass("as published")


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_a_crowd_of_canaries_is_told_apart_where_there_is_little_noise(rate: float) -> None:
    rng = np.random.default_rng(0)
    canaries = Records(torch.from_numpy(rng.integers(0, 2, (12, 40)).astype(np.float32)), torch.arange(12) % 2)
    common = Records(torch.rand(6, 40), torch.zeros(6, dtype=torch.int64))
    coins = rng.integers(0, 2, 12)
    count = 1 if rate == 1.0 else 40
    for noise, right in ((0.01, True), (1000.0, False)):
        ledger = Ledger((Ask("a", "sums", 1.0, count=count, rate=rate, noise=noise),), 1.0, 1e-5)
        crowd = Crowd(common, canaries, coins, RepeatableNoise(1))
        counter = Listener(common, ledger, [crowd], noise=RepeatableNoise(2))
        with pytest.raises(Answered):
            for _ in range(count):
                if rate == 1.0:
                    counter.sums("sums", lambda r: r.x, 3.0)
                else:
                    counter.sampled("sums", lambda r: r.x, 3.0)
        estimates = crowd.estimates()
        assert np.abs(estimates).max() < 0.01 or right
        assert not right or (((estimates > 0) == (coins == 1)).mean() > 0.9)
