"""The owner's and the held-out records in the form they were given in, for whoever makes releases of such records.

Cells are left as they are: a text stays the text that stood in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sfumato.core.errors import DataError, UsageError
from sfumato.data.plain_tables import DELIMITED, Given, delimited, write_delimited

Kind = Literal["delimited", "parquet", "npz", "frame", "columns", "array"]
Rows = npt.NDArray[np.integer[Any]]
_PARQUET = (".parquet", ".pq")


@dataclass(frozen=True)
class PooledRecords:
    """All rows, the owner's first. ``suffix`` is that of the owner's file, "" for records in memory."""

    kind: Kind
    records: Any
    suffix: str = ""
    delimiter: str = ","

    @classmethod
    def of(cls, owner: Given, holdout: Given) -> PooledRecords:
        """Both, by the owner's columns.

        Raises:
            UsageError: They have different forms, or one that cannot be handed on row by row.
            DataError: Held-out records lack a column of the owner's.
        """
        kinds = _kind(owner), _kind(holdout)
        if kinds[0] != kinds[1]:
            raise UsageError("a pipeline gets records of both: give owner and holdout in the same form.")
        kind = kinds[0]
        if kind in ("frame", "array"):
            return cls(kind, _joined(kind, owner, holdout))
        if kind == "columns":
            parts = [{str(name): np.asarray(values) for name, values in one.items()} for one in (owner, holdout)]
            return cls(kind, _joined(kind, *parts))
        path = Path(owner)
        sides = [_read(kind, Path(one)) for one in (owner, holdout)]
        return cls(kind, _joined("columns", sides[0][0], sides[1][0]), path.suffix, sides[0][1])

    def take(self, rows: Rows) -> Any:
        """These rows, in the form they were given in; of a file, columns by name."""
        if self.kind == "frame":
            return self.records.iloc[rows].reset_index(drop=True)
        if self.kind == "array":
            return self.records[rows]
        return {name: values[rows] for name, values in self.records.items()}

    def write(self, rows: Rows, path: Path) -> None:
        """These rows as a file like the owner's."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = self.take(rows)
        if self.kind == "delimited":
            write_delimited(path, {name: values.tolist() for name, values in columns.items()}, self.delimiter)
        elif self.kind == "parquet":
            pq.write_table(pa.table({name: pa.array(values.tolist()) for name, values in columns.items()}), path)
        else:
            np.savez(path, **columns)

    def __len__(self) -> int:
        return len(self.records) if self.kind in ("frame", "array") else len(next(iter(self.records.values())))

    @property
    def in_file(self) -> bool:
        return bool(self.suffix)


def _kind(given: Given) -> Kind:
    if isinstance(given, (str, PathLike)):
        suffix = Path(given).suffix.lower()
        if Path(given).is_dir() or suffix not in (*DELIMITED, *_PARQUET, ".npz"):
            raise UsageError(f"a pipeline of rows gets tables, and {given} is none: leave it out.")
        return "delimited" if suffix in DELIMITED else "npz" if suffix == ".npz" else "parquet"
    if isinstance(given, Mapping):
        return "columns"
    return "frame" if hasattr(given, "iloc") else "array"


def _read(kind: Kind, path: Path) -> tuple[dict[str, Any], str]:
    import pyarrow.parquet as pq

    if kind == "npz":
        with np.load(path, allow_pickle=False) as kept:
            return {name: kept[name] for name in kept.files}, ","
    table, delimiter = delimited(path) if kind == "delimited" else (pq.read_table(path), ",")
    return {name: _objects(table[name].to_pylist()) for name in table.column_names}, delimiter


def _objects(values: list[Any]) -> npt.NDArray[np.object_]:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _joined(kind: Kind, owner: Any, holdout: Any) -> Any:
    if kind == "array":
        return np.concatenate([np.asarray(owner), np.asarray(holdout)])
    lacking = next((name for name in owner if name not in holdout), None)
    if lacking is not None:
        raise DataError(
            f"a pipeline gets records of both, and the held-out ones have no column '{lacking}': add it, or leave out "
            "the pipeline."
        )
    if kind == "columns":
        return {name: np.concatenate([values, holdout[name]]) for name, values in owner.items()}
    import pandas

    return pandas.concat([owner, holdout[list(owner.columns)]], ignore_index=True)
