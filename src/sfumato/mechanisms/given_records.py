"""Records as scikit-learn hands them over: ``X`` and ``y`` as arrays, tensors, DataFrames and Series."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.core.dataset import Dataset
from sfumato.core.errors import UsageError
from sfumato.core.schema import Schema


def is_frame(X: Any) -> bool:
    """Whether ``X`` is a DataFrame."""
    return hasattr(X, "columns") and hasattr(X, "to_dict")


def as_dataset(X: Any, y: Any, private: Any, ids: Any) -> Dataset:
    """The data set that a fit learns from.

    Args:
        X: A ``Dataset``, which brings its own labels; records (N, …) with values in [0, 1]; or a DataFrame in its own
            units.
        y: The utility label of every record, or several: values, a Series, a DataFrame, or values by name. Labels
            without a name are called ``y``.
        private: The same for labels that nobody may learn (without a name: ``private``); of a DataFrame also names of
            its columns.
        ids: The subject of every record; of a DataFrame also the name of its column.

    Returns:
        The data set.

    Raises:
        UsageError: Labels beside a ``Dataset``, or two of one name.
        DataError: The records or labels cannot be used.
    """
    if isinstance(X, Dataset):
        if any(one is not None for one in (y, private, ids)):
            raise UsageError("a Dataset brings its labels and ids: give fit(dataset), or fit(X, y, private=…, ids=…).")
        return X
    if not is_frame(X):
        return Dataset.from_arrays(X, utility=_by_name(y, "y"), private=_by_name(private, "private"), ids=ids, name="X")
    hidden, names = ({}, _names(private)) if _named(private) else ((found := _by_name(private, "private")), list(found))
    served = _by_name(y, "y")
    subject = ids if ids is None or isinstance(ids, str) else "id"
    extra = {**served, **hidden, **({} if ids is None or isinstance(ids, str) else {"id": ids})}
    if twice := sorted(set(extra) & set(X.columns)):
        raise UsageError(f"X has a column '{twice[0]}' already: take it out of X, or give the label another name.")
    frame = X.assign(**{name: np.asarray(values) for name, values in extra.items()})
    return Dataset.from_pandas(frame, utility=list(served), private=names, id=subject)


def as_records(X: Any, schema: Schema) -> tuple[Any, Mapping[str, Any]]:
    """Records of the fitted schema, and the private labels that came with them as columns of a DataFrame."""
    if not is_frame(X):
        return X, {}
    data = Dataset.from_pandas(X, schema=schema, require_labels=False)
    return data.x, data.private


def _by_name(values: Any, name: str) -> dict[str, Any]:
    """Labels by name."""
    if values is None:
        return {}
    if isinstance(values, Mapping):
        return dict(values)
    if is_frame(values):
        return {str(column): values[column] for column in values.columns}
    return {str(getattr(values, "name", None) or name): values}


def _named(private: Any) -> bool:
    """Whether the private labels are given as names of columns."""
    return isinstance(private, str) or (
        isinstance(private, (list, tuple)) and all(isinstance(one, str) for one in private)
    )


def _names(private: Any) -> list[str]:
    return [private] if isinstance(private, str) else list(private)
