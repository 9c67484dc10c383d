"""Canaries show less than a sound claim, and more than a false one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from sfumato.auditing.canaries import (
    NATURAL,
    ONE_RUN,
    WORST,
    Losses,
    Neighbours,
    canary_scores,
    lower_bound,
    natural,
    obstacle,
    whole_runs,
    worst_case,
)
from sfumato.auditing.domain_records import heaviest, lightest, uniform
from sfumato.auditing.effort import Effort
from sfumato.core.dataset import IntArray, Splits
from sfumato.core.schema import Column, Schema
from sfumato.mechanisms.synth.mechanism import Synth
from sfumato.privacy.discrete_gaussian import ExactNoise
from sfumato.privacy.gaussian_mechanism import gaussian_epsilon
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.query_counter import Records

QUICK = Effort(draws=50_000, canaries=40)
pytestmark = pytest.mark.usefixtures("tiny_methods_known")


def values(mechanism: Synth, splits: Splits, effort: Effort = QUICK) -> dict[str, float]:
    return {score.attack: score.value for score in canary_scores(mechanism, splits.owner, effort, seed=0)}


@pytest.mark.parametrize("method", ["tiny", "stepwise"])
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_a_sound_method_keeps_its_claim_and_the_worst_case_comes_near(
    method: str, epsilon: float, parity: Splits
) -> None:
    found = values(Synth(method=method, epsilon=epsilon).fit(parity.owner), parity)
    assert all(0.0 <= value < epsilon for value in found.values())
    assert found[WORST] > 0.3 * epsilon
    assert found[NATURAL] > 0.2 * epsilon


@pytest.mark.parametrize("method", ["tiny", "stepwise"])
def test_a_method_with_less_noise_than_it_claims_is_found_out(method: str, parity: Splits) -> None:
    mechanism = Synth(method=method, epsilon=1.0).fit(parity.owner)
    plan = tuple(replace(ask, noise=ask.noise / 4.0) for ask in mechanism.ledger_.plan)
    mechanism.ledger_ = Ledger(plan, 1.0, mechanism.delta)
    scores = {score.attack: score for score in canary_scores(mechanism, parity.owner, QUICK, seed=0)}
    assert scores[WORST].value > 1.5
    assert scores[NATURAL].value > 1.0
    assert scores[WORST].ci[0] == scores[WORST].value < scores[WORST].ci[1]


def test_scores_stand_beside_the_claim(parity: Splits) -> None:
    mechanism = Synth(method="tiny", epsilon=1.0).fit(parity.owner)
    scores = canary_scores(mechanism, parity.owner, QUICK, seed=0)
    assert [score.attack for score in scores] == [WORST, NATURAL, ONE_RUN]
    for score in scores:
        assert (score.threat, score.metric, score.baseline) == ("differential-privacy", "epsilon-lower-bound", 0.0)
        assert score.control is not None and score.value < score.control
        assert score.ci == (score.value, pytest.approx(1.0, abs=1e-3))
    assert [score.n for score in scores] == [100_000, 100_000, 40]


@pytest.mark.parametrize("short", [0.0, 0.25])
def test_canaries_draw_from_the_generator_that_protects_the_run(
    short: float, parity: Splits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A generator that adds a part of its noise, or none at all, is found out by every pair of worlds."""
    whole = ExactNoise.whole

    def less(self: ExactNoise, values: IntArray, scale: float) -> IntArray:
        return np.asarray(values + np.rint(short * (whole(self, values, scale) - values)).astype(np.int64))

    mechanism = Synth(method="tiny", epsilon=1.0).fit(parity.owner)
    monkeypatch.setattr(ExactNoise, "whole", less)
    found = values(mechanism, parity)
    assert found[WORST] > 1.0 and found[NATURAL] > 1.0


def test_a_run_that_is_cut_short_shows_less(parity: Splits) -> None:
    mechanism = Synth(method="stepwise", epsilon=3.0).fit(parity.owner)
    whole, cut = (values(mechanism, parity, replace(QUICK, questions=most))[WORST] for most in (30, 3))
    assert cut < whole


def test_whole_runs_lose_what_fixed_questions_do(parity: Splits) -> None:
    """The heaviest record fills every clip of tiny's sums: N(±μ²/2, μ²) with the μ of the claim, whatever was asked."""
    mechanism = Synth(method="tiny", epsilon=2.0).fit(parity.owner)
    losses = whole_runs(mechanism, worst_case(mechanism), len(parity.owner), runs=60, seed=0)
    spread = np.concatenate([losses.within - losses.within.mean(), losses.without - losses.without.mean()]).std()
    assert gaussian_epsilon(1.0 / spread, mechanism.delta, 1.0) == pytest.approx(2.0, rel=0.3)
    assert losses.within.mean() > 0.0 > losses.without.mean()


@pytest.mark.parametrize("per_person", [1, 40])
def test_the_worst_case_is_a_whole_person_where_people_are_promised(per_person: int, parity: Splits) -> None:
    """Also where nobody in the file has several records: a weight that is left out shows all the same."""
    owner = replace(parity.owner, named=True)
    canary = worst_case(Synth(method="tiny", per_person=per_person).fit(owner)).record
    assert canary.weight is not None and canary.who is not None
    assert len(canary) > 1 and len(torch.unique(canary.who)) == 1
    assert float(canary.weight.sum()) == pytest.approx(1.0)


def test_a_method_that_looks_past_the_counter_has_no_transcript(parity: Splits) -> None:
    assert "past the counter" in str(obstacle(Synth(method="doubtful").fit(parity.owner)))
    assert obstacle(Synth(method="tiny").fit(parity.owner)) is None


def test_the_noise_layer_is_refuted_by_its_gradients(parity: Splits) -> None:
    """Of 400 steps at this rate a record is in at least one with probability 0.9999."""
    mechanism = Synth(method="noise-layer", epsilon=1.0, steps=2).fit(parity.owner)
    plan = tuple(replace(ask, count=400) if ask.rate < 1.0 else ask for ask in mechanism.ledger_.plan)
    mechanism.ledger_ = Ledger(plan, 1.0, mechanism.delta)
    assert obstacle(mechanism) is None
    (score,) = canary_scores(mechanism, parity.owner, QUICK, seed=0)
    assert score.attack == "canary-gradient"
    assert score.value > 3.0 > mechanism.epsilon


def test_the_threshold_is_chosen_on_one_half_and_counted_on_the_other() -> None:
    """Losses that tell the worlds apart in the first half only, by chance, show nothing."""
    without, within = np.zeros(4000), np.zeros(4000)
    within[::2] = 5.0
    assert lower_bound(Losses(without, within), 1e-5)[0] == 0.0
    within[1::2] = 5.0
    value, most = lower_bound(Losses(without, within), 1e-5)
    assert value == pytest.approx(most) and value > 6.0
    assert lower_bound(Losses(without, without), 1e-5)[0] == 0.0


def test_the_natural_canary_is_the_most_unusual_record(parity: Splits) -> None:
    few = parity.owner.take(slice(0, 50))
    x = few.x.copy()
    x[17] = 1.0 - x[17]
    records = Records(torch.from_numpy(x), torch.from_numpy(few.utility["odd"].copy()))
    found: Neighbours = natural(records, seed=0)
    np.testing.assert_array_equal(found.record.x[0].numpy(), x[17])
    assert len(found.common) == 49


def test_worst_case_is_blank_records_and_a_heavy_one_of_another_class(parity: Splits) -> None:
    mechanism = Synth(method="tiny").fit(parity.owner)
    found = worst_case(mechanism)
    assert not found.common.x.any() and bool((found.record.x == 1.0).all())
    assert set(found.common.y.tolist()) == {0} and found.record.y.tolist() == [1]
    np.testing.assert_array_equal(mechanism.records(parity.owner).y, parity.owner.utility["odd"])


def test_records_of_a_tables_domain_can_be_decoded() -> None:
    columns = (
        Column("age", "numeric", low=0.0, high=90.0, nullable=True),
        Column("job", "categorical", categories=("a", "b", "c")),
        Column("size", "numeric"),
    )
    schema = Schema("table", (6,), columns=columns)
    assert lightest(schema, 1).tolist() == [[0, 0, 1, 0, 0, 0]]
    assert heaviest(schema, 1).tolist() == [[1, 0, 0, 0, 1, 1]]
    drawn = uniform(schema, 200, seed=0)
    assert (drawn[:, 2:5].sum(axis=1) == 1.0).all() and (drawn[:, 1] == 0.0).all()
    assert drawn[:, 2:5].mean(axis=0) == pytest.approx([1 / 3] * 3, abs=0.1)
