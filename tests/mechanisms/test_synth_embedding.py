"""`synth --method embedding`: one noisy mean embedding, and a generator that never sees a record."""

from __future__ import annotations

import pytest
import torch
from synth_replay import assert_learns_from_answers_alone, learnt, ledger_for, records_of, task_of

from sfumato.core.dataset import Splits
from sfumato.core.schema import Schema
from sfumato.mechanisms.synth.mechanism import Synth
from sfumato.mechanisms.synth.methods.embedding import Embedding
from sfumato.mechanisms.synth.random_convolutions import FixedFeatures, FixedFront, orthogonal_filters
from sfumato.privacy.discrete_gaussian import RepeatableNoise
from sfumato.privacy.query_counter import QueryCounter, Records

SHAPES = [(1, 28, 28), (3, 32, 32), (1, 8, 8), (2, 9, 40)]


def test_random_filters_are_orthogonal_and_of_length_one() -> None:
    filters = orthogonal_filters(20, 3, 3, torch.Generator().manual_seed(0)).flatten(1)
    assert torch.allclose(filters @ filters.T, torch.eye(20), atol=1e-5)
    many = orthogonal_filters(70, 1, 5, torch.Generator().manual_seed(0)).flatten(1)  # more than 25 have room
    assert torch.allclose(many.norm(dim=1), torch.ones(70), atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_features_are_bounded_fixed_and_of_each_record_by_itself(shape: tuple[int, ...]) -> None:
    x = torch.rand(6, *shape, generator=torch.Generator().manual_seed(1))
    x[0], x[1] = 0.0, 1.0
    for make in (FixedFeatures, FixedFront):
        features = make(shape, seed=3)
        assert not list(features.parameters())
        rows = features(x)
        assert rows.shape == (6, features.size)
        assert float(rows.norm(dim=1).max()) <= 1.0 + 1e-5
        assert torch.allclose(rows[2:3], features(x[2:3]), atol=1e-6)
        assert torch.equal(make(shape, seed=3)(x), rows)


def test_rows_never_need_the_counters_clip(digits: Splits) -> None:
    method = Embedding(task_of(digits.owner.schema))
    rows = method._rows(records_of(digits.owner).take(slice(0, 50)))
    assert float(rows.norm(dim=1).max()) <= 1.0 + 1e-5
    assert torch.allclose(rows[:, 0], torch.tensor(0.1))


def test_embedding_learns_from_the_answers_alone(digits: Splits) -> None:
    records = records_of(digits.owner).take(slice(0, 200))
    assert_learns_from_answers_alone(lambda: Embedding(task_of(digits.owner.schema, steps=2)), records)


def test_embedding_comes_nearer_to_its_target(digits: Splits) -> None:
    method = Embedding(task_of(digits.owner.schema, epsilon=50.0, steps=30))
    records = records_of(digits.owner)
    distances: list[float] = []
    method.learn(
        QueryCounter(records, ledger_for(method, records), noise=RepeatableNoise(0)),
        lambda done, total, losses: distances.append(losses["distance"]),
    )
    assert distances[-1] < 0.8 * distances[0]


def test_class_shares_come_from_the_same_answer() -> None:
    schema = Schema("image", (1, 8, 8), utility={"kind": ("a", "b")})
    records = Records(torch.rand(2000, 1, 8, 8), (torch.arange(2000) % 4 == 0).long())
    method = Embedding(task_of(schema, classes=2, steps=1))
    assert [ask.count for ask in method.plan(2000)] == [1]
    learnt(method, QueryCounter(records, ledger_for(method, records), noise=RepeatableNoise(0)))
    assert float(method.classes.shares[1]) == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize(("classes", "labels"), [(3, "data"), (1, "none"), (40, "data")])
def test_embedding_draws_colour_and_many_classes(classes: int, labels: str) -> None:
    names = tuple(str(number) for number in range(classes))
    schema = Schema("image", (3, 32, 32), utility={"kind": names} if classes > 1 else {})
    records = Records(torch.rand(80, 3, 32, 32), torch.arange(80) % classes)
    method = Embedding(task_of(schema, classes=classes, labels=labels, steps=1))
    learnt(method, QueryCounter(records, ledger_for(method, records), noise=RepeatableNoise(0)))
    x, y = method.sample(6, torch.Generator().manual_seed(0), only=classes - 1)
    assert x.shape == (6, 3, 32, 32)
    assert 0.0 <= float(x.min()) <= float(x.max()) <= 1.0
    assert y.tolist() == [classes - 1] * 6


def test_embedding_run_has_one_event_and_keeps_its_target(digits: Splits) -> None:
    synth = Synth(method="embedding", epsilon=5.0, steps=2).fit(digits.owner)
    guarantee = synth.guarantee()
    assert guarantee.kind == "dp"
    assert guarantee.epsilon is not None
    assert 4.9 < guarantee.epsilon <= 5.0
    assert [event["count"] for event in synth.spent_["events"]] == [1]
    assert len(synth.sample(12, given={"digit": "3"}, seed=0)) == 12
