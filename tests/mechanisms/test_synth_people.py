"""`synth` where people have several rows: a person counts once at most, and the promise is for the person."""

from __future__ import annotations

from collections import Counter as Counts
from pathlib import Path

import numpy as np
import pytest
import torch

from sfumato.core.dataset import Dataset
from sfumato.core.errors import UsageError
from sfumato.core.randomness import Seeded
from sfumato.data import load_splits
from sfumato.mechanisms.synth.mechanism import Synth
from sfumato.privacy.discrete_gaussian import RepeatableNoise
from sfumato.privacy.ledger import PERSON, Ask, Ledger
from sfumato.privacy.query_counter import QueryCounter, Records
from sfumato.studies.synth_file import made_up

DOMAIN = """
columns.age = {kind = "numeric", low = 0, high = 9, integer = true}
columns.job = {kind = "categorical", categories = ["a", "b", "c"]}
columns.y = {kind = "categorical", categories = ["n", "y"]}
"""


def people(rows: list[int], seed: int = 0) -> Dataset:
    """As many people as there are numbers, with so many rows each."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(len(rows)), rows)
    return Dataset.from_arrays(rng.random((len(ids), 3)), utility={"y": np.arange(len(ids)) % 2}, ids=ids)


def recorded(data: Dataset, per_person: int = 1) -> Records:
    synth = Synth(method="tree", per_person=per_person)
    synth.sizes_ = (2,)
    return synth.records(data)


@pytest.mark.parametrize("per_person", [1, 3])
def test_the_rows_of_a_person_weigh_one_at_most(per_person: int) -> None:
    records = recorded(people([1, 2, 3, 9]), per_person)
    assert records.weight is not None and records.who is not None
    totals = torch.zeros(4, dtype=torch.float64).index_add_(0, records.who, records.weight)
    assert totals.tolist() == pytest.approx([min(1.0, rows / per_person) for rows in (1, 2, 3, 9)])


@pytest.mark.parametrize("seed", range(10))
def test_a_person_moves_no_answer_by_more_than_its_bound(seed: int) -> None:
    data = people([1, 4, 2, 12, 3], seed)
    gone, scale = seed % 5, 5.0  # of any length before it is clipped

    def answers(part: Dataset) -> list[np.ndarray]:
        plan = tuple(Ask("part", name, 1.0, noise=1e-7) for name in ("sums", "moments", "products"))
        counter = QueryCounter(recorded(part), Ledger(plan, 1.0, 1e-5), noise=RepeatableNoise(0))
        groups = {"groups": lambda r: r.y, "size": 2}
        return [
            counter.sums("sums", lambda r: scale * r.x, 1.0, **groups),  # type: ignore[arg-type]
            counter.moments("moments", lambda r: scale * r.x, 1.0, **groups),  # type: ignore[arg-type]
            counter.products("products", lambda r: (scale * r.x, r.x), 1.0),
        ]

    others = data.take(np.flatnonzero(data.ids != str(gone)))
    moved = [np.linalg.norm(one - other) for one, other in zip(answers(data), answers(others), strict=True)]
    assert max(moved) <= 1.0 + 1e-4 and min(moved) > 0.0


def test_samples_are_of_people_not_of_rows() -> None:
    records = recorded(people([5] * 40))
    for seed in range(5):
        sample = records.sample(0.3, Seeded(seed))
        assert sample.who is not None
        assert set(Counts(sample.who.tolist()).values()) == {5}


def test_neighbouring_files_reach_the_counter_with_one_person_less(tmp_path: Path) -> None:
    (tmp_path / "domain.toml").write_text(DOMAIN)
    for case in range(40):
        rng = np.random.default_rng(case)
        lines = made_up(rng)[:200]
        gone = lines[int(rng.integers(len(lines)))][0]
        found = []
        for kept in (lines, [line for line in lines if line[0] != gone]):
            text = "\n".join(",".join(map(str, line)) for line in [("who", "age", "job", "y"), *kept])
            (tmp_path / "people.csv").write_text(text + "\n")
            options = {"x": ["age", "job"], "utility": ["y"], "domain": tmp_path / "domain.toml", "id": "who"}
            owner = load_splits(tmp_path / "people.csv", **options, seed=case, limit=(None, 180)[case % 2]).owner  # type: ignore[arg-type]
            records = recorded(owner)
            assert records.weight is not None
            rows = zip(owner.x.tolist(), records.y.tolist(), records.weight.tolist(), owner.ids, strict=True)
            found.append(Counts((tuple(x), y, weight, str(who)) for x, y, weight, who in rows))
        assert not found[1] - found[0], "nobody else is new, or weighs something else"
        left = found[0] - found[1]
        assert {who for *_, who in left} <= {str(gone)}
        assert sum(weight * many for (_, _, weight, _), many in left.items()) <= 1.0 + 1e-9


def test_the_promise_is_for_people_where_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "domain.toml").write_text(DOMAIN)
    lines = made_up(np.random.default_rng(0))
    text = "\n".join(",".join(map(str, line)) for line in [("who", "age", "job", "y"), *lines])
    (tmp_path / "people.csv").write_text(text + "\n")
    options = {"x": ["age", "job"], "utility": ["y"], "domain": tmp_path / "domain.toml"}
    promises = {}
    for id in (None, "who"):
        owner = load_splits(tmp_path / "people.csv", **options, id=id, shares=(0.9,)).owner  # type: ignore[arg-type]
        synth = Synth(epsilon=3.0, steps=1).fit(owner)
        synth.save(tmp_path / str(id))
        promises[id] = Synth.load(tmp_path / str(id)).guarantee()
    assert promises["who"].covers.unit == "person" and promises["who"].relation == PERSON
    assert "one person with all their records" in promises["who"].statement
    assert promises[None].covers.unit == "record"
    assert any("name their column with --id" in condition.says for condition in promises[None].conditions)


def test_randomised_response_is_not_for_people() -> None:
    data = people([2] * 100)
    synth = Synth(method="tree", labels="data").set_params(delta=1e-5)
    synth.labels = "noisy"
    synth.sizes_ = (2,)
    with pytest.raises(UsageError, match="labels=noisy answers for every record by itself"):
        synth._checked_plan(data, recorded(data))
