"""A mechanism as a transformer of scikit-learn, on arrays and DataFrames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.validation import check_is_fitted

import sfumato
from sfumato.core.errors import DataError, UsageError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 6))
Y = (X[:, 0] + X[:, 1] > 0).astype(int)
SEX = np.where(X[:, 2] > 0, "f", "m")


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(6)])
    return frame.assign(sex=SEX, town=np.where(X[:, 3] > 0, "Aachen", "Bonn"))


def pipeline() -> Pipeline:
    steps = [("scale", MinMaxScaler(clip=True)), ("ran", sfumato.RAN(epochs=2)), ("clf", LogisticRegression())]
    return Pipeline(steps)


def test_a_mechanism_stands_in_a_pipeline() -> None:
    fitted = pipeline().fit(X, Y)
    check_is_fitted(fitted)
    assert fitted.score(X, Y) > 0.8


def test_a_grid_search_tries_its_knob() -> None:
    search = GridSearchCV(pipeline(), {"ran__lam": [0.05, 0.9]}, cv=2).fit(X, Y)
    assert set(search.best_params_) == {"ran__lam"} and np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_private_labels_go_through_a_pipeline() -> None:
    steps = [("scale", MinMaxScaler(clip=True)), ("hide", sfumato.LinearFilter(steps=60, base="raw"))]
    fitted = Pipeline(steps).fit(X, Y, hide__private=SEX)
    assert fitted["hide"].schema_.private == {"private": ("f", "m")}


def test_a_clone_is_unfitted_and_has_the_same_parameters() -> None:
    fitted = sfumato.RAN(lam=0.3, epochs=1).fit(MinMaxScaler().fit_transform(X), Y)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    with pytest.raises(UsageError, match="not fitted yet"):
        copy.transform(X)


def test_frames_and_series_are_records_and_labels(people: pd.DataFrame) -> None:
    hide = sfumato.LinearFilter(steps=60, base="pca").fit(people, pd.Series(Y, name="ill"), private="sex")
    assert hide.schema_.utility == {"ill": ("0", "1")} and hide.schema_.private == {"sex": ("f", "m")}
    assert "sex" not in hide.schema_.x_columns
    assert len(hide.transform(people)) == len(people)


def test_a_frame_is_encoded_as_at_the_fit(people: pd.DataFrame) -> None:
    ran = sfumato.RAN(epochs=1).fit(people, Y)
    some = people[people.town == "Bonn"]  # of one category only
    np.testing.assert_array_equal(ran.transform(some), ran.transform(people)[(people.town == "Bonn").to_numpy()])


def test_a_label_that_is_a_column_already_is_refused(people: pd.DataFrame) -> None:
    with pytest.raises(UsageError, match="X has a column 'sex' already"):
        sfumato.RAN(epochs=1).fit(people, pd.Series(Y, name="sex"))


def test_a_data_set_brings_its_own_labels() -> None:
    data = sfumato.Dataset.from_arrays(MinMaxScaler().fit_transform(X), utility={"y": Y})
    with pytest.raises(UsageError, match="a Dataset brings its labels"):
        sfumato.RAN(epochs=1).fit(data, Y)


def test_unscaled_arrays_are_refused_with_the_record() -> None:
    with pytest.raises(DataError, match=r"X: record 0 holds .* records lie in"):
        sfumato.RAN(epochs=1).fit(X, Y)


@pytest.mark.parametrize("what", [sfumato.RAN(lam=0.3), sfumato.RAN(epochs=1).fit(MinMaxScaler().fit_transform(X), Y)])
def test_a_notebook_shows_the_parameters(what: Any) -> None:
    shown = what._repr_html_()
    assert "lam" in shown and ("not fitted yet" in shown) != hasattr(what, "schema_")


def test_a_notebook_shows_the_promise_of_a_release_and_no_markup_of_names() -> None:
    data = sfumato.Dataset.from_arrays(MinMaxScaler().fit_transform(X), utility={"<b>y": Y})
    release = sfumato.RAN(epochs=1).fit(data).release(data)
    assert "empirical" in release._repr_html_() and "<b>y" not in release._repr_html_()
