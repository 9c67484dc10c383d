"""A data set from arrays: what a user has at hand becomes what every mechanism takes."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato
from sfumato.core.errors import DataError


def test_arrays_of_each_kind_become_a_data_set() -> None:
    labels = {"utility": {"job": ["cook", "clerk"] * 20}, "private": {"sex": np.tile([1, 0], 20)}}
    rng = np.random.default_rng(0)
    for shape, kind in (((40, 1, 16, 16), "image"), ((40, 3, 128), "signal"), ((40, 5), "table")):
        data = sfumato.Dataset.from_arrays(rng.random(shape), **labels)
        assert data.schema.kind == kind and data.x.dtype == np.float32 and len(data) == 40
        assert data.schema.utility == {"job": ("clerk", "cook")} and data.utility["job"][:2].tolist() == [1, 0]
        assert data.schema.private == {"sex": ("0", "1")} and data.private["sex"][:2].tolist() == [1, 0]


def test_data_set_from_arrays_can_be_split_fitted_and_released() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    x = np.clip(rng.random((300, 6)) * 0.5 + 0.5 * y[:, None], 0, 1)
    data = sfumato.Dataset.from_arrays(x, utility={"y": y}, private={"s": rng.integers(0, 2, 300)}, name="mine")
    splits = sfumato.split(data, seed=0)
    release = sfumato.RAN(epochs=1).fit(splits.owner).release(splits.victim)
    assert len(release) == len(splits.victim) and set(release.utility) == {"y"}


def test_subjects_stay_together() -> None:
    ids = np.repeat(np.arange(60), 5)
    data = sfumato.Dataset.from_arrays(np.random.default_rng(0).random((300, 4)), utility={"y": ids % 2}, ids=ids)
    splits = sfumato.split(data, seed=0)
    assert not set(splits.owner.ids) & set(splits.victim.ids)


def test_arrays_that_do_not_fit_are_one_sentence() -> None:
    with pytest.raises(DataError, match=r"mine: x has shape \(4,\): give"):
        sfumato.Dataset.from_arrays(np.zeros(4), name="mine")
    with pytest.raises(DataError, match="column 'y' has 3 values for 4 records"):
        sfumato.Dataset.from_arrays(np.zeros((4, 2)), utility={"y": [0, 1, 0]})


def test_dir_lists_what_there_is() -> None:
    assert {"Dataset", "RAN", "load_run", "audit", "load_splits"} <= set(dir(sfumato)) == set(sfumato.__all__)
    for name in sfumato.__all__:
        assert getattr(sfumato, name) is not None
