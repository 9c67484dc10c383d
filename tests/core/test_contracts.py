"""The frozen value types keep their promises."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.dataset import Dataset, Splits
from sfumato.core.errors import DataError, RuleBroken, UsageError, check_range, unknown
from sfumato.core.guarantee import Guarantee, empirical
from sfumato.core.knowledge import Truth, guessing
from sfumato.core.randomness import Secure, Seeded, derive_seed
from sfumato.core.release import Release
from sfumato.core.schema import Column, Schema
from sfumato.core.score import Score, worst_by_threat


def test_dataset_arrays_are_read_only(tiny: Dataset) -> None:
    with pytest.raises(ValueError, match="read-only"):
        tiny.x[0] = 0
    with pytest.raises(FrozenInstanceError):
        tiny.name = "other"  # type: ignore[misc]


def test_dataset_refuses_records_of_another_shape(tiny: Dataset) -> None:
    with pytest.raises(DataError, match=r"shape \(1, 8, 8\)"):
        Dataset(np.zeros((3, 1, 8, 8), np.float32), tiny.schema)


def test_splits_refuse_a_shared_subject(tiny: Dataset) -> None:
    with pytest.raises(DataError, match="both owner and victim"):
        Splits(tiny.take(slice(0, 10)), tiny.take(slice(10, 20)), tiny.take(slice(9, 30)))


def test_splits_refuse_an_empty_part(tiny: Dataset) -> None:
    with pytest.raises(DataError, match="attacker split is empty"):
        Splits(tiny.take(slice(0, 10)), tiny.take(slice(0, 0)), tiny.take(slice(10, 30)))


def test_schema_survives_json() -> None:
    schema = Schema(
        "table",
        (4,),
        utility={"income": ("low", "high")},
        private={"sex": ("f", "m")},
        columns=(Column("age", "numeric", low=17, high=90), Column("job", "categorical", ("a", "b"), nullable=True)),
    )
    assert Schema.from_json(schema.to_json()) == schema


def test_empirical_guarantee_cannot_carry_an_epsilon() -> None:
    with pytest.raises(RuleBroken, match="cannot carry an epsilon"):
        Guarantee(kind="empirical", statement="", epsilon=1.0, delta=1e-5)


@pytest.mark.parametrize("kind", ["dp", "as-published", "anonymity"])
def test_guarantee_without_its_grounds_is_refused(kind: Any) -> None:
    with pytest.raises(RuleBroken):
        Guarantee(kind=kind, statement="trust me")


def test_release_has_no_place_for_raw_records_or_private_columns() -> None:
    assert {f.name for f in fields(Release)} == {"mechanism", "payload", "guarantee", "utility"}


def test_release_with_nan_names_the_record() -> None:
    payload = np.zeros((3, 2), np.float32)
    payload[1, 0] = np.nan
    with pytest.raises(DataError, match="record 1"):
        Release("x", payload, empirical(""))


def test_truth_is_shut_while_an_attack_guesses(tiny: Dataset) -> None:
    truth = Truth(tiny, np.arange(40))
    with guessing():
        with pytest.raises(RuleBroken, match="tried to read the victims' truth"):
            truth.open()
        with pytest.raises(RuleBroken, match="tried to read the victims' truth"):
            truth.positions()
    assert truth.open() is tiny


def score(value: float, **more: Any) -> Score:
    given = {"attack": "a", "threat": "t", "metric": "mse", "better_for_owner": "higher", "ci": (value, value)}
    rest = {"baseline": None, "control": None, "n": 1, "seconds": 0.0, "primary": True}
    return Score(value=value, **{**given, **rest, **more})


def test_worst_score_follows_the_metrics_direction() -> None:
    assert worst_by_threat([score(0.2), score(0.1)])["t"].value == 0.1
    lower = [score(0.2, better_for_owner="lower"), score(0.1, better_for_owner="lower")]
    assert worst_by_threat(lower)["t"].value == 0.2


def test_score_outside_its_range_is_refused() -> None:
    with pytest.raises(RuleBroken, match="outside its range"):
        score(1.5, limits=(0.0, 1.0))


def test_unknown_name_suggests_the_right_one() -> None:
    assert "did you mean 'noisy'" in str(unknown("mechanism", "nosy", ["noisy", "none", "ran"]))


@given(st.floats(allow_nan=True))
def test_check_range_lets_only_the_range_pass(value: float) -> None:
    if 0 <= value <= 1:
        check_range("m", "p", value, 0, 1)
    else:
        with pytest.raises(UsageError, match="p must lie in"):
            check_range("m", "p", value, 0, 1)


def test_seeds_of_two_purposes_differ() -> None:
    assert derive_seed(0, "a") != derive_seed(0, "b") != derive_seed(1, "a")


@pytest.mark.parametrize("source", [Secure(), Seeded(0)])
def test_laplace_noise_has_its_scale(source: Any) -> None:
    noise = source.laplace((200_000,), 0.5)
    assert abs(noise.mean()) < 0.01
    assert np.abs(noise).mean() == pytest.approx(0.5, rel=0.02)  # E|noise| = b
    assert noise.var() == pytest.approx(0.5, rel=0.05)  # 2b²


def test_secure_noise_never_repeats() -> None:
    assert (Secure().uniform((100,)) != Secure().uniform((100,))).any()
