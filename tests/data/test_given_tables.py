"""Records that are in memory already: DataFrames, arrays, data sets of torch and of Hugging Face."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.data import Subset, TensorDataset

from sfumato import Dataset, load, load_splits
from sfumato.core.errors import DataError, UsageError

RNG = np.random.default_rng(1)


@pytest.fixture
def people() -> pd.DataFrame:
    frame = pd.DataFrame({"age": RNG.integers(18, 90, 200), "height": RNG.normal(170, 9, 200).round(1)})
    frame["town"] = RNG.choice(["Aachen", "Bonn", "Cologne"], 200)
    frame["ill"] = RNG.choice(["yes", "no"], 200)
    frame["sex"] = RNG.choice(["f", "m"], 200)
    return frame


def test_a_frame_gives_what_its_file_gives(people: pd.DataFrame, tmp_path: Path) -> None:
    people.to_parquet(tmp_path / "people.parquet")
    from_file = load(tmp_path / "people.parquet", utility="ill", private="sex")
    from_frame = Dataset.from_pandas(people, utility="ill", private="sex")
    np.testing.assert_array_equal(from_file.x, from_frame.x)
    assert from_file.schema == from_frame.schema


def test_a_frame_is_split_as_its_file_is(people: pd.DataFrame, tmp_path: Path) -> None:
    people.to_parquet(tmp_path / "people.parquet")
    from_file = load_splits(tmp_path / "people.parquet", utility="ill", private="sex")
    from_frame = load_splits(people, utility="ill", private="sex")
    np.testing.assert_array_equal(from_file.owner.x, from_frame.owner.x)


def test_categorical_nullable_and_time_columns_are_read(people: pd.DataFrame) -> None:
    typed = people.assign(
        town=people.town.astype("category"),
        age=people.age.astype("Int64").mask(people.age > 80),
        ill=people.ill == "yes",
    )
    data = Dataset.from_pandas(typed, utility="ill", private="sex")
    assert [column.kind for column in data.schema.columns] == ["numeric", "numeric", "categorical"]
    assert data.schema.columns[0].nullable


def test_a_torch_data_set_is_read_by_its_items() -> None:
    items = TensorDataset(torch.rand(40, 1, 8, 8), torch.arange(40) % 3)
    data = Dataset.from_torch(Subset(items, range(30)), utility="label")
    assert data.x.shape == (30, 1, 8, 8) and data.schema.utility == {"label": ("0", "1", "2")}


def test_items_of_several_shapes_are_refused() -> None:
    class Ragged(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, row: int) -> Any:
            return torch.rand(1, 8, 8 + row), row % 2

    with pytest.raises(DataError, match="the items differ in shape"):
        Dataset.from_torch(Ragged(), utility="label")


def test_a_data_set_of_hugging_face_keeps_its_class_names(people: pd.DataFrame) -> None:
    datasets = pytest.importorskip("datasets", reason="the package datasets is not installed")
    features = datasets.Features({"x": datasets.Value("float32"), "kind": datasets.ClassLabel(names=["cat", "dog"])})
    given = datasets.Dataset.from_dict({"x": [0.5, 1.5, 2.5, 3.5], "kind": [0, 1, 0, 1]}, features=features)
    data = Dataset.from_huggingface(given, utility="kind")
    assert data.schema.utility == {"kind": ("cat", "dog")}
    with pytest.raises(UsageError, match="several parts: give one of them"):
        Dataset.from_huggingface(datasets.DatasetDict({"train": given, "test": given}), utility="kind")


@pytest.mark.parametrize(
    ("make", "given"),
    [(Dataset.from_pandas, np.zeros((3, 2))), (Dataset.from_torch, iter([1])), (Dataset.from_huggingface, {"x": [1]})],
)
def test_another_type_is_named(make: Any, given: Any) -> None:
    with pytest.raises(UsageError, match=f"got {type(given).__name__}"):
        make(given)


def test_arrays_of_several_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="'x' 5, 'y' 4"):
        load({"x": np.zeros((5, 3)), "y": np.zeros(4)}, utility="y")
