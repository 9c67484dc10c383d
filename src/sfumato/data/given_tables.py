"""What a caller already has in memory, opened as if it were a file: arrays, DataFrames, data sets of other packages."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from sfumato.core.errors import DataError, UsageError
from sfumato.data.readers.locate import LocatedSource, open_data
from sfumato.data.readers.source import MemorySource

Given = Any
"""A named set, a file or folder; an array (N, …), arrays by name, an arrow table, a DataFrame, a ``torch`` data set of
(record, label) or a Hugging Face ``Dataset``."""


def open_given(given: Given, name: str) -> LocatedSource:
    """Open what was given; ``name`` is what messages call a value in memory.

    The items of a ``torch`` data set become the columns ``x`` and ``label``; with more than one label in an item
    ``label0``, ``label1`` and so on.

    Raises:
        UsageError: It is none of these.
        DataError: The arrays do not have one entry a record.
    """
    if isinstance(given, (str, PathLike)):
        return open_data(given)
    if hasattr(given, "with_format") and hasattr(given, "column_names"):
        return _hugging_face(given, name)
    if hasattr(given, "column_names") and hasattr(given, "to_batches"):
        return _opened(name, given, {})
    if hasattr(given, "columns") and hasattr(given, "to_dict"):
        return _opened(name, _frame(given, name), {})
    if any(base.__module__.startswith("torch.utils.data") for base in type(given).__mro__) and hasattr(
        given, "__len__"
    ):
        given = _items(given, name)
    if isinstance(given, Mapping):
        arrays = {str(key): np.asarray(value) for key, value in given.items()}
    elif hasattr(given, "__array__"):
        arrays = {"x": np.asarray(given)}
    else:
        kinds = "a path, an array, a dict of arrays, a DataFrame, or a data set of torch or Hugging Face"
        raise UsageError(f"{name}: {type(given).__name__} cannot be read: give {kinds}.")
    lengths = {key: len(value) if value.ndim else -1 for key, value in arrays.items()}
    if not arrays or len(set(lengths.values())) != 1 or -1 in lengths.values():
        sizes = ", ".join(f"'{key}' {length}" for key, length in lengths.items()) or "none"
        raise DataError(f"{name}: the arrays do not have one entry a record each ({sizes}): make them equally long.")
    import pyarrow as pa

    columns = {key: _column(key, value, name) for key, value in arrays.items()}
    shapes = {key: value.shape[1:] for key, value in arrays.items() if value.ndim > 1}
    return _opened(name, pa.table(columns), shapes)


def _opened(name: str, table: Any, shapes: Mapping[str, tuple[int, ...]]) -> LocatedSource:
    return LocatedSource(name, {"all": MemorySource(name, name, table, cell_shapes=shapes)})


def _hugging_face(given: Any, name: str) -> LocatedSource:
    """The arrow table of a ``datasets.Dataset``, with the class names that its features carry."""
    if isinstance(given.column_names, Mapping):
        raise UsageError(
            f"{name}: a Hugging Face DatasetDict has several parts: give one of them ({', '.join(given)})."
        )
    classes = {key: tuple(one.names) for key, one in given.features.items() if hasattr(one, "names")}
    table = given.with_format("arrow")[:]
    return LocatedSource(name, {"all": MemorySource(name, name, table, class_names=classes)})


def _items(given: Any, name: str) -> dict[str, Any]:
    """The items of a ``torch`` data set as columns."""
    items = [one if isinstance(one, (tuple, list)) else (one,) for one in (given[row] for row in range(len(given)))]
    sizes = {len(one) for one in items}
    if len(sizes) != 1:
        raise DataError(
            f"{name}: its items have {sorted(sizes)} entries: give items of one shape, or no fewer than one."
        )
    labels = sizes.pop() - 1
    names = ("x", "label") if labels == 1 else ("x", *(f"label{place}" for place in range(labels)))
    try:
        return {key: np.stack([np.asarray(one[place]) for one in items]) for place, key in enumerate(names)}
    except ValueError as error:
        raise DataError(f"{name}: the items differ in shape ({error}): give records of one shape.") from None


def _frame(frame: Any, name: str) -> Any:
    import pyarrow as pa

    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"{name}: the DataFrame cannot be read ({error}): give every column one type.") from None


def _column(key: str, values: Any, name: str) -> Any:
    import pyarrow as pa

    if values.dtype.kind in "US":
        flat = pa.array(np.ravel(values).astype(str).tolist(), pa.string())
    elif values.dtype.kind in "biuf":
        flat = pa.array(np.ascontiguousarray(values).ravel())
    else:
        raise DataError(f"{name}: '{key}' holds {values.dtype} values: give numbers, booleans or text.")
    width = int(np.prod(values.shape[1:]))
    return flat if values.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, width)
