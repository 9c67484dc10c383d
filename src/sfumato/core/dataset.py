"""Records with their labels, and the three disjoint parts that every study works with."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.errors import DataError, UsageError
from sfumato.core.number_scale import GAP, scale_of
from sfumato.core.origin import Hashes, Origin
from sfumato.core.schema import Column, Kind, Schema

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
_AT_ONCE = 65_536
"""Names of subjects that are texts of Python at a time."""


@dataclass(frozen=True)
class Dataset:
    """Records ``x`` (float32 in [0, 1], shape ``(N, *schema.shape)``) with integer-coded labels.

    ``ids`` names the subject of each record (several records may share one); without a subject column each row is
    its own subject, and ``named`` is false. Splits never separate the records of a subject. ``contents`` are hashes of
    the raw values that ``x`` was encoded from; without them ``x`` itself counts as raw. ``earlier`` goes on counting
    copies where these are a piece of a file, see ``Origin``. A label that is a number is held in small steps
    (``core.number_scale``); ``left_out`` records of the source had none. The arrays are read-only.
    """

    x: FloatArray
    schema: Schema
    utility: Mapping[str, IntArray] = field(default_factory=dict)
    private: Mapping[str, IntArray] = field(default_factory=dict)
    ids: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, dtype=np.str_))
    party: IntArray | None = None
    name: str = "data"
    named: bool = False
    contents: Hashes | None = None
    earlier: Counter[bytes] | None = field(default=None, repr=False, compare=False)
    left_out: int = 0

    def __post_init__(self) -> None:
        n = len(self.x)
        if self.x.shape[1:] != self.schema.shape:
            raise DataError(f"{self.name}: records have shape {self.x.shape[1:]}, the schema says {self.schema.shape}.")
        if self.x.dtype != np.float32:
            raise DataError(f"{self.name}: records must be float32, got {self.x.dtype}.")
        if len(self.ids) == 0 and n > 0:
            object.__setattr__(self, "ids", np.array([f"{self.name}:{row}" for row in range(n)]))
        labels = {**self.utility, **self.private}
        for column, values in (*labels.items(), ("ids", self.ids)):
            if len(values) != n:
                raise DataError(f"{self.name}: column '{column}' has {len(values)} values for {n} records.")
        for values in (self.x, self.ids, *labels.values()):
            values.setflags(write=False)

    @classmethod
    def from_arrays(
        cls,
        x: npt.ArrayLike,
        *,
        utility: Mapping[str, npt.ArrayLike] | None = None,
        private: Mapping[str, npt.ArrayLike] | None = None,
        ids: npt.ArrayLike | None = None,
        name: str = "data",
    ) -> Dataset:
        """A data set from arrays.

        Args:
            x: Records with values in [0, 1]: pictures (N, channels, height, width), signals (N, channels, time) or
                rows of numbers (N, columns).
            utility: For each label that others may use, one class a record, as whole numbers or texts; or, with
                fractions among the values, a number a record.
            private: The same for each label that nobody may learn.
            ids: The subject of each record; without it every record is its own subject.
            name: How messages call these records.

        Returns:
            The data set, with class names in sorted order.

        Raises:
            DataError: The shape is none of these, or a label does not have one value a record.
        """
        records = np.array(x, dtype=np.float32)
        kinds: dict[int, Kind] = {2: "table", 3: "signal", 4: "image"}
        if records.ndim not in kinds:
            raise DataError(f"{name}: x has shape {records.shape}: give (N, C, H, W), (N, C, T) or (N, columns).")
        labels = {**(utility or {}), **(private or {})}
        numbers = {label: scale for label, values in labels.items() if (scale := scale_of(values)) is not None}
        found = {
            label: np.unique(np.asarray(values), return_inverse=True)
            for label, values in labels.items()
            if label not in numbers
        }
        classes: dict[str, tuple[str, ...]] = dict.fromkeys(numbers, ())
        classes |= {label: tuple(str(value) for value in values.tolist()) for label, (values, _) in found.items()}
        columns = tuple(Column(f"x{i}", "numeric") for i in range(records.shape[1])) if records.ndim == 2 else ()
        schema = Schema(
            kinds[records.ndim],
            records.shape[1:],
            utility={label: classes[label] for label in utility or {}},
            private={label: classes[label] for label in private or {}},
            x_columns=tuple(column.name for column in columns) or ("x",),
            columns=columns,
            numbers=numbers,
        )
        codes = {label: scale.codes(labels[label]) for label, scale in numbers.items()}
        codes |= {label: codes.reshape(-1).astype(np.int64) for label, (_, codes) in found.items()}
        return cls(
            records,
            schema,
            utility={label: codes[label] for label in utility or {}},
            private={label: codes[label] for label in private or {}},
            ids=np.empty(0, dtype=np.str_) if ids is None else np.asarray(ids).astype(np.str_),
            name=name,
            named=ids is not None,
        )

    @classmethod
    def from_pandas(cls, frame: Any, **columns: Any) -> Dataset:
        """A data set from a DataFrame, encoded as the same table in a file would be.

        Args:
            frame: A DataFrame, one record a row.
            columns: ``x``, ``utility``, ``private``, ``id``, ``domain`` or ``schema``, as for ``sfumato.load``.

        Returns:
            The data set; ranges and categories are read from the frame unless ``domain`` or ``schema`` gives them.

        Raises:
            UsageError: It is no DataFrame, or a column is unknown.
            DataError: The values cannot be used; the message names column and row.
        """
        if not (hasattr(frame, "columns") and hasattr(frame, "to_dict")):
            raise UsageError(f"from_pandas takes a DataFrame, got {type(frame).__name__}: try Dataset.from_arrays.")
        return _loaded(frame, columns)

    @classmethod
    def from_torch(cls, items: Any, **columns: Any) -> Dataset:
        """A data set from a ``torch.utils.data.Dataset`` of known length, whose items are records or (record, label).

        Args:
            items: The data set. The label is the column ``label``; of several labels ``label0``, ``label1``, ….
            columns: ``utility``, ``private`` and the like, as for ``sfumato.load``: ``utility="label"``.

        Returns:
            The data set; a channel's range is read from the records.

        Raises:
            UsageError: It has no length, or a column is unknown.
            DataError: The items differ in shape.
        """
        if not (hasattr(items, "__getitem__") and hasattr(items, "__len__")) or hasattr(items, "__array__"):
            raise UsageError(f"from_torch takes a data set of known length, got {type(items).__name__}.")
        return _loaded(items, columns)

    @classmethod
    def from_huggingface(cls, given: Any, **columns: Any) -> Dataset:
        """A data set from one part of a ``datasets.Dataset``, with the class names that it carries.

        Args:
            given: The data set.
            columns: ``x``, ``utility``, ``private``, ``id`` and the like, as for ``sfumato.load``.

        Returns:
            The data set.

        Raises:
            UsageError: It is no ``datasets.Dataset``, or a column is unknown.
            DataError: The values cannot be used; the message names column and row.
        """
        if not hasattr(given, "with_format"):
            raise UsageError(f"from_huggingface takes a datasets.Dataset, got {type(given).__name__}.")
        return _loaded(given, columns)

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: npt.NDArray[np.intp] | slice) -> Dataset:
        """The records at ``rows``, with all their labels."""
        return replace(
            self,
            x=self.x[rows],
            utility={name: values[rows] for name, values in self.utility.items()},
            private={name: values[rows] for name, values in self.private.items()},
            ids=self.ids[rows],
            party=None if self.party is None else self.party[rows],
            contents=None if self.contents is None else self.contents[rows],
        )

    def sample(self, most: int, seed: int) -> Dataset:
        """At most so many of the records, in random order: a file may be sorted."""
        return self.take(np.random.default_rng(seed).permutation(len(self))[:most])

    def joined(self, more: Dataset) -> Dataset:
        """These records, then ``more`` of the same schema and labels."""
        return replace(
            self,
            x=np.concatenate([self.x, more.x]),
            utility={name: np.concatenate([values, more.utility[name]]) for name, values in self.utility.items()},
            private={name: np.concatenate([values, more.private[name]]) for name, values in self.private.items()},
            ids=np.concatenate([self.ids, more.ids]),
            party=None if self.party is None or more.party is None else np.concatenate([self.party, more.party]),
            contents=joined_hashes(self, more),
        )

    @cached_property
    def origin(self) -> Origin:
        """What tells these records apart, whatever became of them since they were read."""
        subjects = self.ids if self.named else None
        return Origin(self.x, contents=self.contents, subjects=subjects, earlier=self.earlier)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of records and subjects: two data sets with one digest hold the same records in the same order."""
        hasher = hashlib.sha256(repr(self.x.shape).encode())
        hasher.update(np.ascontiguousarray(self.x).data)
        for start in range(0, len(self.ids), _AT_ONCE):
            hasher.update(
                b"\n" * (start > 0) + "\n".join(map(str, self.ids[start : start + _AT_ONCE].tolist())).encode()
            )
        return hasher.hexdigest()

    def label_digest(self, name: str) -> str:
        """SHA-256 of the class of every record, by name of the class, or of its number."""
        scale = self.schema.numbers.get(name)
        meant = self.schema.classes(name) if scale is None else (scale.low, scale.step)
        hasher = hashlib.sha256(repr(meant).encode())
        hasher.update(np.ascontiguousarray(self.label(name), dtype=np.int64).data)
        return hasher.hexdigest()

    def label(self, name: str) -> IntArray:
        """The codes of a utility or private label."""
        self.schema.width(name)
        return self.utility[name] if name in self.utility else self.private[name]

    def numbers(self, name: str) -> npt.NDArray[np.float64]:
        """The values of a label that is a number, in its own unit; NaN where one is missing."""
        return self.schema.numbers[name].values(self.label(name))

    @property
    def complete(self) -> npt.NDArray[np.bool_]:
        """Which records have all their numbers."""
        whole = np.ones(len(self), dtype=bool)
        for name in self.schema.numbers:
            if name in self.utility or name in self.private:
                whole &= self.label(name) != GAP
        return whole

    def standardised(self) -> Dataset:
        """The same records; their numbers are measured in deviations from their own mean."""
        if not self.schema.numbers:
            return self
        numbers = {name: scale.learnt(self.label(name)) for name, scale in self.schema.numbers.items()}
        return replace(self, schema=replace(self.schema, numbers=numbers))


def _loaded(given: Any, columns: Mapping[str, Any]) -> Dataset:
    """What the data room reads, which is imported only when somebody has something to read."""
    loaded: Dataset = import_module("sfumato.data").load(given, **columns)
    return loaded


def joined_hashes(*pieces: Dataset) -> Hashes | None:
    """The contents of all pieces, or None if all of them are as raw as they look."""
    if all(piece.contents is None for piece in pieces):
        return None
    return np.concatenate([piece.origin.contents for piece in pieces])


def _hashes(ids: npt.NDArray[Any]) -> IntArray:
    """(N,): a hash of each subject, the same within this process."""
    parts = (ids[start : start + _AT_ONCE].tolist() for start in range(0, len(ids), _AT_ONCE))
    return np.fromiter((hash(str(one)) for part in parts for one in part), np.int64, len(ids))


@dataclass(frozen=True)
class Splits:
    """The owner's records, the attacker's auxiliary records and the victims: no subject is in two of them."""

    owner: Dataset
    attacker: Dataset
    victim: Dataset

    def __post_init__(self) -> None:
        for name, part in self.parts.items():
            if len(part) == 0:
                raise DataError(f"the {name} split is empty: give more records or other split sizes.")
        hashes = {name: _hashes(part.ids) for name, part in self.parts.items()}
        for a, b in (("owner", "attacker"), ("owner", "victim"), ("attacker", "victim")):
            likely = np.intersect1d(hashes[a], hashes[b])
            if not len(likely):
                continue
            first, second = (set(self.parts[name].ids[np.isin(hashes[name], likely)].tolist()) for name in (a, b))
            if shared := first & second:
                raise DataError(
                    f"{len(shared)} subjects (for instance '{next(iter(shared))}') are in both {a} and {b} split."
                )

    @property
    def schema(self) -> Schema:
        return self.owner.schema

    @property
    def parts(self) -> dict[str, Dataset]:
        """The three parts by name."""
        return {"owner": self.owner, "attacker": self.attacker, "victim": self.victim}
