"""Parties that differ: every record goes to one party, where its own hash and class say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import DataError, UsageError
from sfumato.parties.partition import split_parties
from sfumato.parties.party_folder import open_party
from sfumato.parties.skew import Skew, one_class_each

KINDS = st.one_of(
    st.just("even"),
    st.integers(5, 10).map(lambda k: f"classes={k}"),
    st.floats(0.01, 50).map(lambda a: f"dirichlet={a}"),
    st.floats(0.01, 5).map(lambda a: f"power={a}"),
    st.floats(0.01, 5).map(lambda a: f"lognormal={a}"),
)


def records(count: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.integers(0, 256, (count, 16), dtype=np.uint8), random.integers(0, classes, count)


@settings(max_examples=40, deadline=None)
@given(kind=KINDS, parties=st.integers(2, 7), count=st.integers(0, 120), seed=st.integers(0, 99))
def test_every_record_has_exactly_one_party_whatever_the_others_are(
    kind: str, parties: int, count: int, seed: int
) -> None:
    keys, codes = records(count, 10, seed)
    skew = Skew.parse(kind)
    shares = skew.shares(10, parties, seed)
    assert shares.shape == (10, parties) and (shares >= 0).all() and np.allclose(shares.sum(axis=1), 1)
    whose = skew.place(keys, codes, 10, parties, seed, "deal")
    assert len(whose) == count and set(whose.tolist()) <= set(range(parties))
    assert np.array_equal(whose[1:], skew.place(keys[1:], codes[1:], 10, parties, seed, "deal"))  # one record less


def test_a_party_has_as_many_classes_as_it_was_given_and_no_class_is_without_a_party() -> None:
    shares = Skew.parse("classes=3").shares(10, 5, 0)
    assert ((shares > 0).sum(axis=0) == 3).all() and (shares > 0).any(axis=1).all()
    keys, codes = records(5000, 10)
    whose = Skew.parse("classes=3").place(keys, codes, 10, 5, 0, "deal")
    assert all(len(set(codes[whose == party].tolist())) == 3 for party in range(5))


def test_a_small_dirichlet_is_less_even_than_a_large_one() -> None:
    uneven, even = (Skew("dirichlet", a).shares(10, 5, 0) for a in (0.1, 1000.0))
    assert uneven.max(axis=1).mean() > 0.6 and abs(even - 0.2).max() < 0.05


def test_power_law_sizes_are_those_of_the_law() -> None:
    assert Skew("power", 1.0).shares(2, 3, 0)[0] == pytest.approx(np.array([6, 3, 2]) / 11)


def test_a_subject_is_placed_by_its_most_frequent_class() -> None:
    keys = np.repeat(records(2, 2)[0], 3, axis=0)
    assert one_class_each(keys, np.array([1, 0, 1, 0, 0, 1])).tolist() == [1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("shards=2", "partition"),
        ("classes=two", "give a number"),
        ("classes=1.5", "whole number"),
        ("dirichlet=0", "above 0"),
        ("even=1", "no number"),
    ],
)
def test_partitions_that_mean_nothing_are_refused(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Skew.parse(text)


def test_classes_that_do_not_exist_or_would_be_lost_are_refused() -> None:
    with pytest.raises(UsageError, match="has 10 classes"):
        Skew.parse("classes=11").shares(10, 5, 0)
    with pytest.raises(UsageError, match=r"5 of the label's 10 classes.*classes=2"):
        Skew.parse("classes=1").shares(10, 5, 0)


def test_folders_are_skewed_in_what_they_share_and_even_in_what_they_test(tmp_path: Path) -> None:
    options = {"parties": 5, "utility": ["digit"], "limit": 900}
    skewed = split_parties("digits", tmp_path / "a", partition="classes=2", **options)
    plain = split_parties("digits", tmp_path / "b", **options)
    for folder in skewed:
        party = open_party({"data": str(folder)}, 1)
        assert len(set(party.records("train").utility["digit"].tolist())) == 2
        assert len(set(party.records("test").utility["digit"].tolist())) > 5

    def rows(folders: list[Path], part: str) -> pa.Table:
        return pa.concat_tables([pq.read_table(one / f"{part}.parquet") for one in folders])

    assert rows(skewed, "train").num_rows == rows(plain, "train").num_rows
    assert rows(skewed, "test").equals(rows(plain, "test"))


def test_a_party_without_records_and_sizes_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    options = {"parties": 5, "utility": ["digit"], "limit": 100}
    with pytest.raises(DataError, match="more even"):
        split_parties("digits", tmp_path / "a", partition="power=9", **options)
    with pytest.raises(UsageError, match="drop --each"):
        split_parties("digits", tmp_path / "a", partition="power=1", each=5, **options)
    with pytest.raises(UsageError, match="same records"):
        split_parties("digits", tmp_path / "a", partition="classes=2", vertical=True, **options)
    assert not (tmp_path / "a").exists()
