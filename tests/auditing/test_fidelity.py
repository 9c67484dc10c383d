"""Likeness of two sets of records, against cases by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.auditing.fidelity import columns_of, fidelity_scores, nearest_real, one_by_one
from sfumato.auditing.similarity import (
    contrasts,
    dynamic_ranges,
    frechet_distance,
    inside,
    nearest_rows,
    shape_likeness,
    trend_likeness,
)
from sfumato.auditing.table_fidelity import Coded, independent, table_likeness, unique_matches
from sfumato.core.dataset import Dataset, Splits
from sfumato.core.guarantee import empirical
from sfumato.core.release import Release
from sfumato.core.schema import Column, Schema


def test_equal_sets_are_wholly_alike() -> None:
    codes = np.random.default_rng(0).integers(0, 3, (50, 4))
    vectors = np.random.default_rng(1).standard_normal((60, 5))
    assert shape_likeness(codes, codes, [3] * 4) == pytest.approx(1.0)
    assert trend_likeness(codes, codes[::-1], [3] * 4) == pytest.approx(1.0)
    assert frechet_distance(vectors, vectors) == pytest.approx(0.0, abs=1e-6)
    assert inside(vectors, vectors).all()


def test_marginals_by_hand() -> None:
    """One column 3 : 1 against 1 : 3, one alike: overlap ½ and 1. Jointly (0,0) 2, (0,1) 1, (1,1) 1 against …"""
    real = np.array([[0, 0], [0, 0], [0, 1], [1, 1]])
    other = np.array([[0, 0], [1, 0], [1, 1], [1, 1]])
    assert shape_likeness(real, other, [2, 2]) == pytest.approx((0.5 + 1.0) / 2)
    # shares (00, 01, 10, 11): ½ ¼ 0 ¼ against ¼ 0 ¼ ½, overlap ¼ + ¼
    assert trend_likeness(real, other, [2, 2]) == pytest.approx(0.5)


def test_disjoint_sets_have_nothing_in_common() -> None:
    assert shape_likeness(np.zeros((5, 1), int), np.ones((5, 1), int), [2]) == 0.0
    near, far = np.random.default_rng(0).random((2, 40, 3))
    assert not inside(near, far + 10.0).any()


def test_frechet_distance_of_two_gaussians_by_hand() -> None:
    """Diagonal covariances: Σ (m₁ − m₂)² + (s₁ − s₂)²."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((200_000, 2)) * [1.0, 2.0]
    b = rng.standard_normal((200_000, 2)) * [3.0, 2.0] + [1.0, -1.0]
    assert frechet_distance(a, b) == pytest.approx(1 + 1 + 4, rel=0.02)


def test_precision_and_recall_tell_lost_modes_from_strange_records() -> None:
    rng = np.random.default_rng(0)
    real = np.concatenate([rng.normal(0, 0.1, (100, 2)), rng.normal(5, 0.1, (100, 2))])
    half = rng.normal(0, 0.1, (100, 2))  # one mode only: precise, and half is missing
    assert inside(half, real).mean() > 0.85
    assert inside(real, half).mean() == pytest.approx(0.5, abs=0.1)


def test_columns_of_a_table_are_coded_with_their_gaps() -> None:
    columns = (Column("age", "numeric", nullable=True), Column("job", "categorical", categories=("a", "b")))
    schema = Schema("table", (4,), columns=columns, utility={"y": ("no", "yes")})
    x = np.array([[0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]], dtype=np.float32)
    codes, sizes = columns_of(x, {"y": np.array([0, 1, 1])}, schema)
    assert codes.tolist() == [[0, 0, 0], [9, 1, 1], [10, 0, 1]]
    assert sizes == [11, 2, 2]


def test_nearest_real_record_is_found(parity: Splits) -> None:
    nearly = np.clip(parity.owner.x[[3, 11]] + 0.01, 0.0, 1.0).astype(np.float32)
    np.testing.assert_array_equal(nearest_real(nearly, parity.owner), parity.owner.x[[3, 11]])


def released(data: Dataset) -> Release:
    return Release("test", data.x, empirical("A test."), data.utility)


def test_contrast_and_dynamic_range_by_hand() -> None:
    pictures = np.zeros((2, 1, 2, 2), dtype=np.float32)
    pictures[0, 0] = [[0.0, 0.0], [1.0, 1.0]]
    pictures[1, 0] = [[0.2, 0.2], [0.2, 0.6]]
    assert contrasts(pictures) == pytest.approx([0.5, 0.4 * np.sqrt(3) / 4])
    assert dynamic_ranges(pictures) == pytest.approx([1.0, 0.4])


def test_nearest_rows_are_found_block_by_block() -> None:
    among = np.random.default_rng(0).random((40, 1, 2, 2)).astype(np.float32)
    rows = np.random.default_rng(1).integers(0, 40, 1100)
    np.testing.assert_array_equal(nearest_rows(among[rows], among), rows)


def test_numbers_drawn_one_by_one_keep_each_share_and_no_record() -> None:
    x = np.repeat([[0.0, 0.0], [1.0, 1.0]], [300, 100], axis=0).astype(np.float32)
    drawn = one_by_one(x, 4000, np.random.default_rng(0))
    assert drawn.mean(axis=0) == pytest.approx([0.25, 0.25], abs=0.03)
    assert (drawn[:, 0] != drawn[:, 1]).mean() == pytest.approx(2 * 0.25 * 0.75, abs=0.03)


def test_real_pictures_score_as_the_control_and_noise_as_the_baseline(parity: Splits) -> None:
    """But for the neighbours of the owner's records, which are those records."""
    real = {s.metric: s for s in fidelity_scores(released(parity.owner), parity, 1, seed=0)}
    near = {"other-class-neighbours", "exact-copies"}
    assert set(real) == {"frechet-distance", "precision", "recall", "contrast", "dynamic-range", *near}
    for score in real.values():
        assert score.threat == "fidelity" and not score.primary
        assert score.control is not None and score.baseline is not None
        if score.metric not in (*near, "contrast", "dynamic-range"):
            assert abs(score.value - score.control) < 0.3 * abs(score.value - score.baseline), score
    assert real["exact-copies"].value == 1.0 and real["exact-copies"].control < 0.1
    assert real["other-class-neighbours"].value == 0.0
    assert 0.0 < real["other-class-neighbours"].control < 0.4 < real["other-class-neighbours"].baseline
    assert real["contrast"].ci[0] < 1.0 < real["contrast"].ci[1]


def test_paler_pictures_have_less_contrast_and_no_other_neighbours(parity: Splits) -> None:
    pale = Dataset(0.8 * parity.victim.x, parity.schema, parity.victim.utility, name="pale")
    found = {s.metric: s for s in fidelity_scores(released(pale), parity, 1, seed=0)}
    assert found["contrast"].ci[1] < 1.0 and found["contrast"].value == pytest.approx(0.8, abs=0.02)
    assert found["dynamic-range"].ci[1] < 1.0
    assert found["exact-copies"].value == 0.0


def test_noise_scores_as_the_baseline(parity: Splits) -> None:
    real = {s.metric: s for s in fidelity_scores(released(parity.owner), parity, 1, seed=0)}
    noise = np.random.default_rng(0).integers(0, 2, parity.owner.x.shape).astype(np.float32)
    found = {s.metric: s.value for s in fidelity_scores(Release("t", noise, empirical("A test.")), parity, 1, seed=0)}
    assert found["precision"] < 0.05 and found["frechet-distance"] > 10 * real["frechet-distance"].value


def test_real_rows_score_as_the_control() -> None:
    rng = np.random.default_rng(0)
    columns = (Column("a", "numeric"), Column("b", "categorical", categories=("x", "y")))
    schema = Schema("table", (3,), columns=columns, utility={"y": ("no", "yes")})

    def part(name: str) -> Dataset:
        y = rng.integers(0, 2, 300)
        b = np.eye(2)[(y + (rng.random(300) < 0.1)) % 2]
        x = np.concatenate([rng.beta(2, 5, (300, 1)), b], axis=1).astype(np.float32)
        return Dataset(x, schema, {"y": y}, name=name)

    splits = Splits(part("owner"), part("attacker"), part("victim"))
    found = {s.metric: s for s in fidelity_scores(released(part("drawn")), splits, 1, seed=0)}
    own = {"k-marginal", "propensity-error", "association-error", "unique-exact-matches", "inconsistencies"}
    assert set(found) == {"column-shapes", "pair-trends", *own}
    for metric in ("column-shapes", "pair-trends"):
        score = found[metric]
        assert score.control == pytest.approx(score.value, abs=0.05)
        assert score.baseline is not None and score.baseline < score.value - 0.1
    for metric in own:
        score = found[metric]
        scale = 1000.0 if metric == "k-marginal" else 1.0
        assert score.control == pytest.approx(score.value, abs=0.1 * scale)
        assert score.ci[0] <= score.value <= score.ci[1]


def coded(codes: np.ndarray, sizes: tuple[int, ...]) -> Coded:
    return Coded(codes, sizes, codes.astype(np.float32))


def test_the_measures_of_tables_are_what_they_are_called() -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(0, 3, 4000)
    real = coded(np.stack([first, (first + (rng.random(4000) < 0.1)) % 3], axis=1), (3, 3))  # two cells of nine never
    same = table_likeness(real, real, 0)
    assert same["k-marginal"][0] == 1000.0 and same["association-error"][0] == 0.0 and same["inconsistencies"][0] == 0.0
    assert same["propensity-error"][0] < 0.05
    alone = independent(real, 4000, rng)
    apart = table_likeness(real, alone, 0)
    shares = [np.bincount(one.codes @ [3, 1], minlength=9) / 4000 for one in (real, alone)]
    assert apart["k-marginal"][0] == pytest.approx(1000 * (1 - 0.5 * np.abs(shares[0] - shares[1]).sum()))
    assert apart["association-error"][0] > 0.5 and apart["propensity-error"][0] > 0.2
    never = [code for code in range(9) if shares[0][code] == 0]
    assert apart["inconsistencies"][0] == pytest.approx(np.isin(alone.codes @ [3, 1], never).mean())
    flipped = coded(2 - real.codes, (3, 3))
    assert table_likeness(real, flipped, 0)["propensity-error"][0] > same["propensity-error"][0]


def test_unique_records_are_met_only_if_every_column_is_the_same() -> None:
    owner = np.array([[1, 2], [1, 2], [3, 4], [5, 6], [7, 8]], dtype=np.float32)
    other = np.array([[3, 4], [1, 2], [5, 0]], dtype=np.float32)
    assert unique_matches(owner, other).sum() == 1 and len(unique_matches(owner, other)) == 3
