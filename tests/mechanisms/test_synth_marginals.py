"""`synth`'s method for tables without a label: sound, true to pairs of columns, and within declared rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from synth_replay import assert_learns_from_answers_alone, ledger_for, records_of, task_of
from test_synth_tree import COLUMNS, SCHEMA, Both, people

from sfumato.auditing.fidelity import columns_of
from sfumato.core.column_rules import MISSING, ColumnRule
from sfumato.core.dataset import Dataset
from sfumato.core.errors import DataError, RuleBroken, UsageError
from sfumato.core.schema import Column, Schema
from sfumato.data import decode_table
from sfumato.data.encoding.tables import encode_table
from sfumato.mechanisms.base import no_progress
from sfumato.mechanisms.synth.column_cells import cells_of
from sfumato.mechanisms.synth.mechanism import Synth
from sfumato.mechanisms.synth.methods import marginals
from sfumato.mechanisms.synth.methods.marginals import Marginals
from sfumato.mechanisms.synth.product_mixture import Ensemble, Tables, enough
from sfumato.mechanisms.synth.rounded_rows import rounded_rows
from sfumato.mechanisms.synth.structural_zeros import boxes
from sfumato.privacy.discrete_gaussian import RepeatableNoise
from sfumato.privacy.ledger import Ask, Ledger, calibrated
from sfumato.privacy.query_counter import QueryCounter, Records, deviations

BARE = replace(SCHEMA, utility={})
RULES = (
    ColumnRule({"age": ((0.0, 29.0),)}, {"job": ("clerk", MISSING)}),
    ColumnRule({"member": ("yes",)}, {"city": ("city 00", "city 01")}, exactly=True),
    ColumnRule({"height": (MISSING,), "member": ("no",)}, {"gain": ((0.0, 7_777.0),)}),
)
STEPS = 150


def obeying(data: Dataset) -> Dataset:
    """The records that keep the rules, declared with them."""
    schema = replace(data.schema, rules=RULES)
    return replace(data.take(np.flatnonzero(~broken(data.x, schema))), schema=schema)


def broken(x: np.ndarray, schema: Schema) -> np.ndarray:
    """Which records break a rule, checked on decoded values and written out by hand."""
    table = decode_table(x, schema).to_pandas()
    young = (table.age <= 29) & ~(table.job.isna() | (table.job == "clerk"))
    member = (table.member == "yes") != table.city.isin(["city 00", "city 01"])
    gain = table.height.isna() & (table.member == "no") & (table.gain > 7_777)
    return np.asarray(young | member | gain)


@pytest.fixture(autouse=True, scope="module")
def fewer_draws() -> Iterator[None]:
    """For the regression's curvature, which takes most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marginals, "_DRAWN", 2000)
        yield


@pytest.fixture(scope="module")
def data() -> Dataset:
    return people()


@pytest.fixture(scope="module")
def bare(data: Dataset) -> Dataset:
    return replace(data, utility={}, schema=BARE)


@pytest.fixture(scope="module")
def plenty(bare: Dataset) -> Synth:
    """Learnt with next to no noise."""
    return Synth(labels="none", epsilon=200.0, delta=1e-6, steps=600).fit(bare)


def task(**options: Any) -> Any:
    return replace(task_of(SCHEMA, classes=2, epsilon=1.0, steps=3), **options)


def test_it_learns_from_answers_alone(data: Dataset) -> None:
    few = records_of(data).take(slice(0, 300))
    assert_learns_from_answers_alone(lambda: Marginals(task()), few)


@pytest.mark.parametrize("odd", ["a usual record", "ones everywhere", "zeros", "not a number"])
def test_no_record_moves_an_answer_beyond_its_bound(data: Dataset, odd: str) -> None:
    records = records_of(data).take(slice(0, 300))
    fill = {"ones everywhere": 1.0, "zeros": 0.0}
    x = records_of(data).x[300:301].clone()
    x = torch.full_like(x, fill[odd]) if odd in fill else x
    if odd == "not a number":
        x[0, 0] = float("nan")
    more = Records(torch.cat([records.x, x]), torch.cat([records.y, torch.ones(1, dtype=torch.int64)]))
    method = Marginals(task())
    counter = Both(records, more, ledger_for(method, records))
    method.learn(counter, no_progress)
    assert counter.ledger.complete and set(counter.excess) == {"columns", "pairs", "gradient"}
    assert max(counter.excess.values()) <= 1e-9


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=6), st.integers(0, 1000), st.booleans())
@settings(max_examples=40, deadline=None)
def test_tables_of_one_answer_count_records_and_share_its_noise(weights: list[float], seed: int, named: bool) -> None:
    """A record, or a person with all rows, moves all tables together by 1 at most, whatever cells a method names."""
    rng = np.random.default_rng(seed)
    cells = torch.as_tensor(rng.integers(-2, 7, (40, len(weights))))  # some outside: they count at the ends
    who = torch.as_tensor(rng.integers(0, 9, 40))
    each = torch.bincount(who, minlength=9).double()
    whole = Records(torch.arange(40.0).unsqueeze(1), torch.zeros(40).long())
    if named:
        whole = replace(whole, weight=1.0 / each[who], who=who)
    sizes = [5] * len(weights)

    def places(records: Records) -> torch.Tensor:
        return cells[records.x[:, 0].long()]

    def asked(records: Records) -> list[np.ndarray]:
        ledger = Ledger((Ask("part", "tables", 1.0, noise=1e-6),), 1.0, 1e-5)
        return QueryCounter(records, ledger, noise=RepeatableNoise(0)).tables("tables", places, sizes, weights)

    gone = int(rng.integers(9)) if named else 3
    left = torch.arange(40) != gone if not named else who != gone
    full, less = asked(whole), asked(whole.take(left))
    unit = np.asarray(weights) / np.linalg.norm(weights)
    moved = np.sqrt(sum(((a - b) * w) @ ((a - b) * w) for a, b, w in zip(full, less, unit, strict=True)))
    assert moved <= 1.0 + 1e-6
    total = float(each.gt(0).sum()) if named else 40.0
    assert all(table.sum() == pytest.approx(total, abs=1e-3) for table in full)
    assert deviations(weights, 2.0) == pytest.approx(2.0 / unit)


def test_weights_of_tables_must_be_positive() -> None:
    for wrong in ([], [1.0, 0.0], [1.0, float("nan")]):
        with pytest.raises(RuleBroken, match="weights above 0"):
            deviations(wrong, 1.0)


def test_an_independent_accountant_finds_the_epsilon_that_was_asked_for() -> None:
    """All questions are Gaussian, so they compose to one Gaussian mechanism; its profile by Balle and Wang, solved."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    for epsilon, delta in ((0.5, 1e-7), (1.0, 1e-6), (10.0, 1e-5)):
        method = Marginals(task(epsilon=epsilon, delta=delta))
        plan = calibrated(method.plan(0), epsilon, delta)
        mu = np.sqrt(sum(ask.count / ask.noise**2 for ask in plan))

        def beyond(value: float, mu: float = float(mu), delta: float = delta) -> float:
            return float(norm.cdf(mu / 2 - value / mu) - np.exp(value) * norm.cdf(-mu / 2 - value / mu)) - delta

        assert brentq(beyond, 1e-3, 50.0, xtol=1e-12) == pytest.approx(epsilon, abs=1e-6)


def test_shapes_and_plan_depend_on_the_task_alone(data: Dataset) -> None:
    def shapes(method: Marginals) -> dict[str, Any]:
        return {
            f"{name}.{key}": (value.shape, value.dtype)
            for name, module in method.modules().items()
            for key, value in module.state_dict().items()
        }

    fresh, taught = Marginals(task()), Marginals(task())
    records = records_of(data).take(slice(0, 500))
    taught.learn(QueryCounter(records, ledger_for(taught, records), noise=RepeatableNoise(0)), no_progress)
    assert shapes(fresh) == shapes(taught)
    assert fresh.plan(10) == fresh.plan(10_000)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 50.0])
def test_records_are_in_the_schemas_own_encoding(bare: Dataset, epsilon: float) -> None:
    drawn = Synth(method="marginals", labels="none", epsilon=epsilon, delta=1e-6, steps=STEPS).fit(bare).sample(500)
    assert drawn.x.shape == (500, *SCHEMA.shape) and drawn.x.dtype == np.float32
    assert drawn.x.min() >= 0.0 and drawn.x.max() <= 1.0 and drawn.utility == {}
    (batch,) = decode_table(drawn.x, BARE).combine_chunks().to_batches()
    assert np.allclose(
        encode_table(batch, COLUMNS, "drawn", 0), drawn.x, atol=1e-6
    )  # strict: raises outside the domain


def test_with_little_noise_all_pairs_of_columns_are_alike(bare: Dataset, plenty: Synth) -> None:
    assert plenty.method_.name == "marginals", "the default for a table without labels"
    real, sizes = columns_of(bare.x, {}, BARE)
    drawn, _ = columns_of(plenty.sample(3000, seed=1).x, {}, BARE)
    for i, j in combinations(range(len(sizes)), 2):
        shares = [
            np.bincount(one[:, i] * sizes[j] + one[:, j], minlength=sizes[i] * sizes[j]) / 3000 for one in (real, drawn)
        ]
        assert 0.5 * np.abs(shares[0] - shares[1]).sum() < 0.08, (i, j)
    before, after = (decode_table(one, BARE).to_pandas() for one in (bare.x, plenty.sample(3000, seed=1).x))
    assert abs((before.gain == 0).mean() - (after.gain == 0).mean()) < 0.02, "an end of a range is a value of its own"
    assert abs(before.height.isna().mean() - after.height.isna().mean()) < 0.02
    assert ((after.age > 60) == (after.member == "yes")).mean() > 0.88


def test_a_stored_run_draws_the_same_and_a_category_can_be_asked_for(plenty: Synth, tmp_path: Path) -> None:
    plenty.save(tmp_path / "kept")
    again = Synth.load(tmp_path / "kept")
    assert np.array_equal(plenty.sample(300, seed=4).x, again.sample(300, seed=4).x)
    old = decode_table(again.sample(400, seed=1, given={"member": "yes"}).x, BARE).to_pandas()
    everyone = decode_table(again.sample(400, seed=1).x, BARE).to_pandas()
    assert set(old.member) == {"yes"} and old.age.mean() > everyone.age.mean() + 10
    rare = decode_table(again.sample(50, seed=1, given={"city": "city 17", "member": "no"}).x, BARE).to_pandas()
    assert set(rare.city) == {"city 17"} and set(rare.member) == {"no"} and len(rare) == 50
    with pytest.raises(UsageError, match="category of 'member'"):
        again.sample(5, given={"member": "perhaps"})


def test_a_label_is_learnt_beside_the_pairs(data: Dataset) -> None:
    synth = Synth(method="marginals", epsilon=20.0, delta=1e-6, steps=300).fit(data)
    drawn = synth.sample(3000, seed=0)
    rich = drawn.utility["rich"].astype(bool)
    age = drawn.x[:, 0]
    assert abs(rich.mean() - data.utility["rich"].mean()) < 0.04
    assert age[rich].mean() - age[~rich].mean() == pytest.approx(
        float(data.x[data.utility["rich"] == 1, 0].mean() - data.x[data.utility["rich"] == 0, 0].mean()), abs=0.05
    )
    assert set(synth.sample(200, seed=0, given={"rich": "yes"}).utility["rich"].tolist()) == {1}
    assert synth.guarantee().epsilon == pytest.approx(20.0, abs=1e-3)


def test_declared_rules_hold_in_every_record(data: Dataset) -> None:
    kept = obeying(replace(data, utility={}, schema=BARE))
    synth = Synth(labels="none", epsilon=0.3, delta=1e-6, steps=STEPS).fit(kept)  # much noise
    drawn = synth.sample(4000, seed=0)
    assert not broken(drawn.x, kept.schema).any()
    given_ = synth.sample(500, seed=0, given={"member": "yes"})
    assert not broken(given_.x, kept.schema).any()
    with pytest.raises(DataError, match="rules may forbid"):
        synth.sample(5, given={"member": "yes", "city": "city 17"})


def test_tree_does_not_pretend_to_keep_rules(data: Dataset) -> None:
    with pytest.raises(UsageError, match="tree cannot keep the domain's rules"):
        Synth(method="tree").fit(replace(data, schema=replace(SCHEMA, rules=RULES)))
    synth = Synth(epsilon=2.0, steps=STEPS).fit(obeying(data))
    assert synth.method_.name == "marginals" and not broken(synth.sample(500).x, synth.schema_).any()


def test_a_rule_about_a_label_holds_for_the_class_of_a_mixture(data: Dataset) -> None:
    schema = replace(SCHEMA, rules=(ColumnRule({"rich": ("yes",)}, {"member": ("yes",)}),))
    found = boxes(schema, cells_of(schema), 2)
    assert [box[-1].tolist() for box in found] == [[False, True], [True, False]]
    old = data.x[:, -1] == 1.0
    kept = data.take(np.flatnonzero((data.utility["rich"] == 0) | old))
    synth = Synth(epsilon=0.5, delta=1e-6, steps=20).fit(replace(kept, schema=schema))
    drawn = synth.sample(2000, seed=0)
    assert drawn.utility["rich"].any() and (drawn.x[drawn.utility["rich"] == 1, -1] == 1.0).all()


values = st.sampled_from(["a", "b", "c"])
sides = st.dictionaries(
    values, st.lists(st.sampled_from(["0", "1", "2"]), min_size=1, max_size=2), min_size=1, max_size=2
)


@given(st.lists(st.tuples(sides, sides, st.booleans()), min_size=1, max_size=3))
@settings(max_examples=80, deadline=None)
def test_boxes_hold_exactly_what_the_rules_allow_and_do_not_overlap(given_rules: list[Any]) -> None:
    columns = tuple(Column(name, "categorical", categories=("0", "1", "2")) for name in "abcd")
    rules = [
        ColumnRule(
            {name: tuple(some) for name, some in when.items()},
            {name if name not in when else "d": tuple(some) for name, some in then.items()},
            exactly,
        )
        for when, then, exactly in given_rules
    ]
    schema = Schema("table", (12,), columns=columns, rules=tuple(rules), declared=True)
    names = "abcd"
    every = [dict(zip(names, codes, strict=True)) for codes in np.ndindex(3, 3, 3, 3)]

    def obeys(row: dict[str, int], rule: ColumnRule) -> bool:
        when = all(str(row[name]) in some for name, some in rule.when.items())
        inside = [str(row[name]) in some for name, some in rule.then.items()]
        return all(inside) if when else not (rule.exactly and any(inside))

    allowed = [all(obeys(row, rule) for rule in rules) for row in every]
    try:
        found = boxes(schema, cells_of(schema), 1)
    except UsageError:
        assert not any(allowed)
        return
    held = [sum(all(box[place][row[name]] for place, name in enumerate(names)) for box in found) for row in every]
    assert held == [int(one) for one in allowed]


def test_rows_are_the_mixtures_counts_rounded() -> None:
    rng = np.random.default_rng(0)
    weights, starts = rng.dirichlet(np.ones(12)), np.array([0, 3, 8, 10])
    chances = np.concatenate([rng.dirichlet(np.ones(size), 12) for size in (3, 5, 2)], axis=1)
    bins = rounded_rows(weights, chances, starts, 5000, torch.Generator().manual_seed(0))
    expected = 5000 * weights @ chances
    for column, size in enumerate((3, 5, 2)):
        counts = np.bincount(bins[:, column], minlength=size)
        assert np.abs(counts - expected[starts[column] : starts[column + 1]]).max() < 6, "independent rows miss by 30"
    goal = 5000 * np.einsum("k,ka,kb->ab", weights, chances[:, :3], chances[:, 3:8])
    pairs = np.bincount(bins[:, 0] * 5 + bins[:, 1], minlength=15).reshape(3, 5)
    assert np.abs(pairs - goal).max() < 12
    for rows in (1, 7):
        few = rounded_rows(weights, chances, starts, rows, torch.Generator().manual_seed(1))
        assert few.shape == (rows, 3) and few.min() >= 0 and (few < np.array([3, 5, 2])).all()


def test_few_rows_are_drawn_by_their_chances() -> None:
    weights, starts = np.full(50, 0.02), np.array([0, 2])
    chances = np.tile([0.8, 0.2], (50, 1))
    drawn = [
        rounded_rows(weights, chances, starts, 20, torch.Generator().manual_seed(seed))[:, 0].mean()
        for seed in range(200)
    ]
    assert np.mean(drawn) == pytest.approx(0.2, abs=0.03)


def test_components_are_as_many_as_the_tables_need() -> None:
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, 4, 20_000)] * 3, axis=1)
    codes = np.where(rng.random(codes.shape) < 0.1, rng.integers(0, 4, codes.shape), codes)
    pairs = {}
    for i, j in combinations(range(3), 2):
        table = np.bincount(codes[:, i] * 4 + codes[:, j], minlength=16).reshape(4, 4)
        pairs[i, j] = table + 20.0 * rng.normal(size=(4, 4)), 20.0
    ones = tuple((np.bincount(codes[:, j], minlength=4).astype(float), np.full(4, 20.0)) for j in range(3))
    tables = Tables((4, 4, 4), ones, pairs)
    assert tables.records() == pytest.approx(20_000, rel=0.02)
    assert enough(tables, (1, 6), 300, 0, 1) == 6
    found = Ensemble(tables, 6, 2, 0).fit(400)
    for pair, (table, deviation) in pairs.items():
        assert np.sqrt(((found.table(pair) - table) ** 2).mean()) < 2.5 * deviation
