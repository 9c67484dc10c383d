"""`synth`'s method for tables: sound, in the schema's own encoding, and useful."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from synth_replay import assert_learns_from_answers_alone, ledger_for, records_of, task_of

from sfumato.core.dataset import Dataset
from sfumato.core.errors import DataError, UsageError
from sfumato.core.schema import Column, FixedSum, Schema
from sfumato.data import decode_table, load
from sfumato.data.encoding.tables import encode_table
from sfumato.mechanisms.base import no_progress
from sfumato.mechanisms.synth.column_cells import FINE, Cells, cells_of
from sfumato.mechanisms.synth.consistent_marginals import fitted, merged, nearest, pooled, spanning_tree
from sfumato.mechanisms.synth.fixed_sums import keep_sums
from sfumato.mechanisms.synth.mechanism import Synth
from sfumato.mechanisms.synth.methods.tree import MOST_BINS, Tree
from sfumato.privacy.discrete_gaussian import DoubleArray, RepeatableNoise
from sfumato.privacy.query_counter import QueryCounter, Records

CITIES = tuple(f"city {place:02d}" for place in range(30))
COLUMNS = (
    Column("age", "numeric", low=0, high=99, integer=True, strict=True),
    Column("gain", "numeric", low=0, high=50_000, integer=True, strict=True),
    Column("height", "numeric", low=1.0, high=2.5, nullable=True, strict=True),
    Column("job", "categorical", categories=("clerk", "cook", "pilot"), nullable=True, strict=True),
    Column("city", "categorical", categories=CITIES, strict=True),
    Column("member", "categorical", categories=("no", "yes"), strict=True),
)
SCHEMA = Schema(
    "table",
    (sum(column.width for column in COLUMNS),),
    utility={"rich": ("no", "yes")},
    x_columns=tuple(column.name for column in COLUMNS),
    columns=COLUMNS,
    declared=True,
)


def people(rows: int = 3000, seed: int = 0) -> Dataset:
    """Richer with age and as a pilot; members are the old; most gain nothing; most live in three cities."""
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    job = rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
    rich = rng.random(rows) < 1 / (1 + np.exp(-(0.1 * (age - 55) + 3.0 * (job == 2))))
    height = np.round(rng.normal(1.7, 0.1, rows).clip(1.0, 2.5), 3)
    table = pa.table(
        {
            "age": age,
            "gain": np.where(rng.random(rows) < 0.7, 0, (rng.lognormal(7, 1, rows)).astype(int).clip(1, 50_000)),
            "height": pa.array(height, mask=rng.random(rows) < 0.1),
            "job": [("clerk", "cook", "pilot", None)[code] for code in job],
            "city": [CITIES[code] for code in np.minimum(rng.geometric(0.4, rows) - 1, 29)],
            "member": np.where((age > 60) ^ (rng.random(rows) < 0.05), "yes", "no"),
        }
    )
    (batch,) = table.combine_chunks().to_batches()
    return Dataset(encode_table(batch, COLUMNS, "people", 0), SCHEMA, {"rich": rich.astype(np.int64)}, name="people")


@pytest.fixture(scope="module")
def data() -> Dataset:
    return people()


@pytest.fixture(scope="module")
def plenty(data: Dataset) -> Tree:
    """Learnt with next to no noise."""
    return learnt(data, 200.0)


def learnt(data: Dataset, epsilon: float, **options: Any) -> Tree:
    tree = Tree(replace(task_of(data.schema, classes=2, epsilon=epsilon, steps=0), **options))
    records = (
        records_of(data) if data.utility else Records(torch.from_numpy(data.x.copy()), torch.zeros(len(data)).long())
    )
    tree.learn(QueryCounter(records, ledger_for(tree, records), noise=RepeatableNoise(0)), no_progress)
    return tree


def test_it_learns_from_answers_alone(data: Dataset) -> None:
    few = records_of(data).take(slice(0, 300))
    assert_learns_from_answers_alone(lambda: Tree(task_of(SCHEMA, classes=2, epsilon=1.0, steps=3)), few)


class Both(QueryCounter):
    """Asks of neighbouring records as well, and keeps how far a record moves each answer beyond its sensitivity."""

    def __init__(self, records: Records, more: Records, *rest: Any) -> None:
        super().__init__(records, *rest, noise=RepeatableNoise(1))
        self._more = more
        self.excess: dict[str, float] = {}

    def _answer(self, name: str, total: Callable[[Records], DoubleArray], sensitivity: float) -> DoubleArray:
        moved = float(np.linalg.norm(total(self._more) - total(self._records)))
        self.excess[name] = max(self.excess.get(name, -1.0), moved - sensitivity)
        return super()._answer(name, total, sensitivity)


@pytest.mark.parametrize("odd", ["a usual record", "ones everywhere", "zeros", "not a number"])
def test_no_record_moves_an_answer_beyond_its_bound(data: Dataset, odd: str) -> None:
    records = records_of(data).take(slice(0, 300))
    fill = {"ones everywhere": 1.0, "zeros": 0.0}
    x = records_of(data).x[300:301].clone()
    x = torch.full_like(x, fill[odd]) if odd in fill else x
    if odd == "not a number":
        x[0, 0] = float("nan")
    more = Records(torch.cat([records.x, x]), torch.cat([records.y, torch.ones(1, dtype=torch.int64)]))
    tree = Tree(task_of(SCHEMA, classes=2, epsilon=1.0, steps=3))
    counter = Both(records, more, ledger_for(tree, records))
    tree.learn(counter, no_progress)
    assert counter.ledger.complete and len(counter.excess) == 4
    assert max(counter.excess.values()) <= 1e-9


def test_shapes_and_plan_depend_on_the_task_alone(data: Dataset) -> None:
    def shapes(tree: Tree) -> dict[str, Any]:
        return {
            f"{name}.{key}": (value.shape, value.dtype)
            for name, module in tree.modules().items()
            for key, value in module.state_dict().items()
        }

    fresh = Tree(task_of(SCHEMA, classes=2, epsilon=1.0, steps=0))
    assert shapes(fresh) == shapes(learnt(people(400, seed=3), 1.0)) == shapes(learnt(data, 1.0))
    assert fresh.plan(10) == fresh.plan(10_000)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 50.0])
def test_records_are_in_the_schemas_own_encoding(data: Dataset, epsilon: float) -> None:
    x, y = learnt(data, epsilon).sample(500, torch.Generator().manual_seed(0))
    assert x.shape == (500, *SCHEMA.shape) and x.dtype == torch.float32 and y.shape == (500,)
    assert float(x.min()) >= 0.0 and float(x.max()) <= 1.0 and set(y.tolist()) <= {0, 1}
    table = decode_table(x.numpy(), SCHEMA)
    (batch,) = table.combine_chunks().to_batches()
    again = encode_table(batch, COLUMNS, "drawn", 0)  # strict: raises outside the domain
    assert np.allclose(again, x.numpy(), atol=1e-6)
    whole = [place for place, column in enumerate(COLUMNS) if column.kind == "categorical" or column.integer]
    starts = np.cumsum([0, *(column.width for column in COLUMNS)])
    for place in whole:
        assert np.array_equal(
            again[:, starts[place] : starts[place + 1]], x.numpy()[:, starts[place] : starts[place + 1]]
        )


def test_with_little_noise_columns_pairs_and_labels_are_alike(data: Dataset, plenty: Tree) -> None:
    x, y = (one.numpy() for one in plenty.sample(6000, torch.Generator().manual_seed(1)))
    real, drawn = (decode_table(one, SCHEMA).to_pandas() for one in (data.x, x))
    for name in ("job", "city", "member"):
        shares = [one[name].fillna("?").value_counts(normalize=True) for one in (real, drawn)]
        assert (shares[0] - shares[1].reindex(shares[0].index, fill_value=0.0)).abs().max() < 0.03
    assert abs((real.gain == 0).mean() - (drawn.gain == 0).mean()) < 0.02, "the lower end is a value of its own"
    assert abs(real.height.isna().mean() - drawn.height.isna().mean()) < 0.02
    for level in (25, 40, 60, 80):
        assert abs((real.age < level).mean() - (drawn.age < level).mean()) < 0.03
        assert abs((real.gain < 50 * level).mean() - (drawn.gain < 50 * level).mean()) < 0.04
    assert ((drawn.age > 60) == (drawn.member == "yes")).mean() > 0.9, "a pair along the tree"
    for old in (False, True):
        rich = [
            (labels[(one.age > 60).to_numpy() == old]).mean()
            for one, labels in ((real, data.utility["rich"]), (drawn, y))
        ]
        assert abs(rich[0] - rich[1]) < 0.05


def test_one_class_can_be_asked_for(plenty: Tree) -> None:
    x, y = plenty.sample(700, torch.Generator().manual_seed(1), only=1)
    assert len(x) == 700 and set(y.tolist()) == {1}
    everyone, _ = plenty.sample(3000, torch.Generator().manual_seed(1))
    assert float(x[:, 0].mean()) > float(everyone[:, 0].mean()) + 0.05, "the rich are older"


def test_a_class_that_the_regression_never_says_is_drawn_from_its_tree(data: Dataset) -> None:
    tree = learnt(data, 50.0)
    tree.teacher.weight[:, 1] -= 100.0
    x, y = tree.sample(50, torch.Generator().manual_seed(1), only=1)
    assert len(x) == 50 and set(y.tolist()) == {1}


def test_it_works_without_labels(data: Dataset) -> None:
    bare = replace(data, utility={}, schema=replace(SCHEMA, utility={}))
    synth = Synth(method="tree", labels="none", epsilon=5.0, delta=1e-6).fit(bare)
    drawn = synth.sample(200, seed=0)
    assert drawn.x.shape == (200, *SCHEMA.shape) and drawn.utility == {}
    assert [ask.name for ask in synth.ledger_.plan] == ["histograms", "pairs", "tables"]


def test_several_labels_make_joint_classes(data: Dataset) -> None:
    third = (data.x[:, 0] * 3).astype(np.int64).clip(0, 2)
    schema = replace(SCHEMA, utility={"rich": ("no", "yes"), "third": ("young", "middle", "old")})
    both = Dataset(data.x, schema, {"rich": data.utility["rich"], "third": third}, name="people")
    synth = Synth(epsilon=8.0, delta=1e-6).fit(both)
    drawn = synth.sample(2000, seed=0)
    assert set(drawn.utility) == {"rich", "third"}
    assert np.corrcoef(drawn.utility["third"], drawn.x[:, 0])[0, 1] > 0.7
    old = synth.sample(60, given={"third": "old"}, seed=0)
    assert set(old.utility["third"].tolist()) == {2} and old.x[:, 0].mean() > drawn.x[:, 0].mean()


def test_a_stored_run_draws_the_same(data: Dataset, tmp_path: Path) -> None:
    synth = Synth(epsilon=3.0, delta=1e-6).fit(data)
    synth.save(tmp_path / "kept")
    again = Synth.load(tmp_path / "kept")
    ours, theirs = (one.sample(300, seed=4) for one in (synth, again))
    assert np.array_equal(ours.x, theirs.x) and np.array_equal(ours.utility["rich"], theirs.utility["rich"])
    assert synth.guarantee().kind == "dp" and synth.guarantee().epsilon == pytest.approx(3.0, abs=1e-3)


def test_one_column_is_enough(data: Dataset) -> None:
    schema = replace(SCHEMA, shape=(1,), columns=COLUMNS[:1], x_columns=("age",))
    alone = Dataset(np.ascontiguousarray(data.x[:, :1]), schema, data.utility, name="ages")
    x, _ = learnt(alone, 50.0).sample(2000, torch.Generator().manual_seed(0))
    assert abs(float(x.mean()) - float(data.x[:, 0].mean())) < 0.02


def test_what_cannot_be_protected_is_refused_before_anything_is_asked(data: Dataset) -> None:
    undeclared = replace(data, schema=replace(SCHEMA, declared=False))
    with pytest.raises(DataError, match=r"sfumato data domain FILE > domain.toml.*--domain domain.toml"):
        Synth().fit(undeclared)
    constant = data.x.copy()
    constant[:, 0] = 0.5
    with pytest.raises(DataError, match="'age' is constant"):
        Synth().fit(replace(data, x=constant))
    few = data.take(np.flatnonzero(np.cumsum(data.utility["rich"]) <= 5))
    with pytest.raises(DataError, match=r"class rich = yes has 5 records"):
        Synth().fit(few)
    wide = tuple(Column(f"c{place}", "numeric", strict=True) for place in range(200))
    with pytest.raises(UsageError, match="leave out columns"):
        Tree(task_of(replace(SCHEMA, columns=wide, shape=(200,)), classes=2))


PARTS = (
    Column("rent", "numeric", low=0, high=60, integer=True),
    Column("food", "numeric", low=10, high=50, integer=True),
    Column("rest", "numeric", low=0.0, high=40.0),
    Column("spent", "numeric", low=20, high=120),
)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 60), st.integers(10, 50), st.floats(0, 40), st.floats(20, 120), st.booleans()
        ), min_size=1, max_size=20,
    ),
    st.sampled_from([FixedSum(("rent", "food"), 50.0), FixedSum(("rent", "food", "rest"), "spent"),
                     FixedSum(("rent", "rest"), 99.5), FixedSum(("rent", "food"), "spent")]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_declared_sums_hold_within_the_ranges(rows: list[tuple[float, ...]], one: FixedSum) -> None:
    raw = {column.name: torch.tensor([row[place] for row in rows]).double() for place, column in enumerate(PARTS)}
    gaps = torch.tensor([bool(row[4]) for row in rows])
    missing = {column.name: gaps & (column.name == "rent") for column in PARTS}
    before = {name: values.clone() for name, values in raw.items()}
    keep_sums([one], PARTS, raw, missing)
    total = raw[one.total] if isinstance(one.total, str) else torch.full((len(rows),), one.total).double()
    found = torch.stack([raw[name] for name in one.columns]).sum(dim=0)
    assert torch.allclose(found[~gaps], total[~gaps], atol=1e-6)
    for column in PARTS:
        values = raw[column.name]
        assert bool(((values >= column.low - 1e-9) & (values <= column.high + 1e-9)).all())
        assert torch.equal(values[gaps], before[column.name][gaps]), "records with a missing part are left alone"
        if column.integer:
            assert torch.allclose(values, values.round(), atol=1e-9)


def test_declared_sums_hold_in_drawn_records() -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(0, 101, 1500)
    columns = tuple(Column(name, "numeric", low=0, high=100, integer=True, strict=True) for name in "ab")
    schema = Schema(
        "table", (2,), utility={"y": ("n", "y")}, x_columns=("a", "b"), columns=columns, declared=True,
        sums=(FixedSum(("a", "b"), 100.0),),
    )  # fmt: skip
    x = (np.stack([first, 100 - first], axis=1) / 100).astype(np.float32)
    data = Dataset(x, schema, {"y": (first > 60).astype(np.int64)}, name="halves")
    drawn = Synth(epsilon=2.0, delta=1e-6).fit(data).sample(800, seed=0)
    table = decode_table(drawn.x, schema).to_pandas()
    assert (table.a + table.b == 100).all()
    assert table.a[drawn.utility["y"] == 1].mean() > table.a[drawn.utility["y"] == 0].mean() + 20


numeric = st.builds(
    lambda low, span, **flags: Column("c", "numeric", low=low, high=low + span, **flags),
    st.sampled_from([0.0, -50.0, 17.0, 1e6]),
    st.sampled_from([1.0, 2.0, 30.0, 600.0, 99_999.0]),
    integer=st.booleans(),
    nullable=st.booleans(),
)


@given(numeric, st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_a_value_drawn_from_a_cell_lies_in_it(column: Column, seed: int) -> None:
    (cells,) = cells_of(Schema("table", (column.width,), columns=(column,)))
    assert cells.count <= FINE + 3 and (np.diff(cells.cuts) > 0).all()
    codes = torch.arange(cells.count)
    raw, missing = cells.draw(codes, torch.Generator().manual_seed(seed))
    assert bool(((raw >= column.low) & (raw <= column.high)).all()) and int(missing.sum()) == int(column.nullable)
    if column.integer:
        assert torch.equal(raw, raw.round())
        assert torch.equal(cells.code(cells.encode(raw, missing)), codes), "whole numbers keep their cell"
    else:
        found = cells.code(cells.encode(raw, missing))
        assert int((found - codes).abs().max()) <= 1, "float32 may cross to the neighbour"


def test_ends_of_a_range_are_cells_of_their_own() -> None:
    (cells,) = cells_of(Schema("table", (1,), columns=(Column("gain", "numeric", high=99_999, integer=True),)))
    x = torch.tensor([[0.0], [1.0], [1 / 99_999], [99_998 / 99_999]])
    first, last, second, before = cells.code(x).tolist()
    assert (first, last, second) == (0, cells.count - 1, 1) and before == cells.count - 2
    assert isinstance(cells, Cells) and cells.widths()[[0, -1]].tolist() == [1.0, 1.0]


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=30), st.floats(0.1, 500))
@settings(max_examples=100, deadline=None)
def test_the_nearest_counts_are_counts_and_no_other_is_nearer(values: list[float], total: float) -> None:
    given_ = np.array(values)
    found = nearest(given_, total)
    assert (found >= 0).all() and found.sum() == pytest.approx(total, rel=1e-6)
    other = np.random.default_rng(0).dirichlet(np.ones(len(values))) * total
    assert ((found - given_) ** 2).sum() <= ((other - given_) ** 2).sum() + 1e-6


def test_fitted_tables_have_the_margins_they_should() -> None:
    rng = np.random.default_rng(0)
    rows, columns = rng.dirichlet(np.ones(5)) * 100, rng.dirichlet(np.ones(7)) * 100
    table = fitted(rng.random((5, 7)), rows, columns)
    assert np.allclose(table.sum(axis=0), columns) and np.allclose(table.sum(axis=1), rows, rtol=1e-3)


@given(st.integers(0, 10_000), st.sampled_from([0.1, 20.0, 1000.0]), st.integers(1, 512))
@settings(max_examples=60, deadline=None)
def test_bins_are_runs_of_cells_and_not_too_many(seed: int, deviation: float, cells: int) -> None:
    counts = np.random.default_rng(seed).exponential(50, cells) + deviation * np.random.default_rng(seed).normal(
        size=cells
    )
    bins = merged(counts, deviation, 20, MOST_BINS - 3)
    assert bins[0] == 0 and set(np.diff(bins)) <= {0, 1} and bins.max() < MOST_BINS - 3
    few = pooled(counts, deviation, MOST_BINS)
    assert few.max() < MOST_BINS and set(few) == set(range(few.max() + 1))


def test_the_tree_takes_the_heaviest_edges_and_no_empty_ones() -> None:
    scores = {(0, 1): 5.0, (0, 2): 1.0, (1, 2): 4.0, (0, 3): -1.0, (1, 3): -2.0, (2, 3): -0.5}
    assert spanning_tree(scores, 4) == [(0, -1), (1, 0), (2, 1), (3, -1)]


def test_adult_at_one_epsilon_is_nearly_as_good_as_the_real_records() -> None:
    folder = Path(os.environ.get("SFUMATO_DATA", "/nowhere")) / "adult"
    if not folder.is_dir():
        pytest.skip("SFUMATO_DATA has no adult")
    from sklearn.ensemble import HistGradientBoostingClassifier

    train = load("adult", utility="income", private=(), part="train")
    order = np.random.default_rng(0).permutation(len(train))
    owner, held = train.take(order[6500:]), train.take(order[:6500])
    drawn = Synth(epsilon=1.0).fit(owner).sample(len(owner), seed=0)
    student = HistGradientBoostingClassifier(random_state=0).fit(drawn.x, drawn.utility["income"])
    assert (student.predict(held.x) == held.utility["income"]).mean() > 0.845
    assert drawn.schema.declared
