"""Labels that are numbers: how they are held, and the metrics of a regression, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.attacks.attribute.number_attack import measure_regression
from sfumato.core import metrics
from sfumato.core.dataset import Dataset
from sfumato.core.errors import DataError
from sfumato.core.leakage import with_leakage
from sfumato.core.number_scale import GAP, NumberScale
from sfumato.core.schema import Schema
from sfumato.core.score import Score

SCALE = NumberScale(0.0, 1_327_000.0, whole=True)


def people(values: list[float]) -> Dataset:
    schema = Schema("table", (1,), private={"age": ()}, numbers={"age": SCALE})
    return Dataset(np.zeros((len(values), 1), np.float32), schema, private={"age": SCALE.codes(values)})


def test_whole_numbers_and_halves_survive_as_codes() -> None:
    values = np.array([-9000.0, 0.0, 12.5, 1_327_000.0, 2_000_000.0])
    assert (SCALE.values(SCALE.codes(values)) == values).all()


def test_a_missing_number_is_a_gap_and_comes_back_missing() -> None:
    codes = SCALE.codes([1.0, np.nan])
    assert codes[1] == GAP and np.isnan(SCALE.values(codes)[1])
    assert people([1.0, np.nan]).complete.tolist() == [True, False]


def test_standardised_numbers_have_mean_0_and_deviation_1_and_come_back() -> None:
    learnt = SCALE.learnt(SCALE.codes([10.0, 20.0, 30.0]))
    standard = learnt.standard(learnt.codes([10.0, 20.0, 30.0]))
    assert standard.mean() == pytest.approx(0.0) and standard.std() == pytest.approx(1.0)
    assert learnt.raw(standard) == pytest.approx([10.0, 20.0, 30.0])


def test_what_a_fit_learnt_is_stored_and_does_not_make_another_label() -> None:
    learnt = people([1.0, 3.0]).standardised().schema
    again = Schema.from_json(learnt.to_json())
    assert (again.numbers["age"].mean, again.numbers["age"].deviation) == (2.0, 1.0)
    assert again == people([1.0]).schema


def test_a_number_has_one_output_and_no_classes() -> None:
    schema = Schema("table", (1,), utility={"job": ("a", "b"), "age": ()}, numbers={"age": SCALE})
    assert [schema.width(label) for label in schema.utility] == [2, 1]
    parts = schema.by_label(np.array([[1.0, 2.0, 3.0]], np.float32))
    assert parts["job"].tolist() == [[1.0, 2.0]] and parts["age"].tolist() == [[3.0]]
    with pytest.raises(DataError, match="'age' is a number and has no classes: ask for 'age:class'"):
        schema.classes("age")


def test_quarters_of_a_number_are_groups_of_about_equal_size() -> None:
    names, group = SCALE.quarters(SCALE.codes(np.arange(8.0)))
    assert names == ("0 to 1", "2 to 3", "4 to 5", "6 to 7") and np.bincount(group).tolist() == [2, 2, 2, 2]
    assert SCALE.quarters(SCALE.codes([0.0] * 7 + [5.0]))[0] == ("0", "5")


def test_r2_is_what_the_guess_explains_of_the_variance() -> None:
    truth, guess = np.array([0.0, 2.0, 4.0]), np.array([0.0, 2.0, 1.0])  # errors 0, 0, 9 of 4 + 0 + 4
    assert metrics.explained(truth, guess).mean() == pytest.approx(1 - 9 / 8)
    statistic = metrics.r2_statistic(truth, guess)
    assert statistic(np.ones(3)) == pytest.approx(1 - 9 / 8)
    assert statistic(np.array([1.0, 1.0, 0.0])) == 1.0  # without the third record
    assert metrics.explained(truth, np.full(3, 2.0)).mean() == pytest.approx(0.0)
    assert metrics.explained(truth, truth).mean() == 1.0
    assert metrics.explained(np.ones(3), guess).tolist() == [0.0, 0.0, 0.0]  # nothing varies


@pytest.mark.parametrize(("wanted", "r2", "mae"), [("lower", "lower", "higher"), ("higher", "higher", "lower")])
def test_r2_and_error_have_opposite_directions(wanted: str, r2: str, mae: str) -> None:
    data = people([0.0, 2.0, 4.0, 6.0])
    first, second = measure_regression(
        data.numbers("age"), np.array([1.0, 2.0, 4.0, 6.0]), data, better_for_owner=wanted
    )  # type: ignore[arg-type]
    assert (first.metric, first.better_for_owner, first.primary, first.value) == ("r2", r2, True, 1 - 1 / 20)
    assert (second.metric, second.better_for_owner, second.primary, second.value) == ("mae", mae, False, 0.25)
    assert first.ci[0] <= first.value <= first.ci[1] and second.ci[0] <= second.value <= second.ci[1]


def test_leakage_of_a_number_is_by_r2_or_by_the_absolute_error_whichever_is_worse() -> None:
    def score(metric: str, value: float, baseline: float, control: float, *, primary: bool) -> Score:
        better = "lower" if metric == "r2" else "higher"
        known = {"better_for_owner": better, "ci": (value, value), "n": 9, "seconds": 0.0, "target": "age"}
        return Score(
            "probe", "attribute", metric, value=value, baseline=baseline, control=control, primary=primary, **known
        )  # type: ignore[arg-type]

    r2, mae = with_leakage([score("r2", 0.2, 0.0, 0.8, primary=True), score("mae", 6.0, 10.0, 2.0, primary=False)])
    assert mae.leakage == pytest.approx(0.5)
    assert (r2.leakage, r2.leakage_by) == (pytest.approx(0.5), "mae")


def test_an_array_with_fractions_is_a_number_and_whole_numbers_are_classes() -> None:
    data = Dataset.from_arrays(np.zeros((3, 2)), utility={"pay": [0.5, 1.0, 2.0]}, private={"job": [1.0, 2.0, 1.0]})
    assert data.numbers("pay") == pytest.approx([0.5, 1.0, 2.0]) and data.schema.private["job"] == ("1.0", "2.0")
