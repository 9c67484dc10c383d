"""What a data set is made of: kind, shape, ranges, label classes; enough to encode new files alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sfumato.core.column_rules import ColumnRule
from sfumato.core.errors import DataError, RuleBroken, unknown
from sfumato.core.number_scale import NumberScale

Kind = Literal["image", "signal", "audio", "table"]


@dataclass(frozen=True)
class Column:
    """One column of a table and its place in the encoded vector.

    numeric: ``(v − low)/(high − low)`` clipped to [0, 1], one entry; if ``nullable``, a second entry is 1 where the
    value is missing (and the first is 0). categorical: one-hot over ``categories``; a missing value is a category of
    its own (``MISSING``) if ``nullable``. ``strict`` is set by a declared domain: a value outside is a fault, where
    otherwise it would count as the nearest end of the range. Each text in ``absent`` stands for a missing number.

    A date is a numeric column with a ``form``, in which the file writes it: days since 1970-01-01, or hours since
    midnight if the form is ``clock``. With a ``cycle`` (``"week sine"``) the column is not the date but its place in
    that cycle, and ``of`` is the date's column.
    """

    MISSING = "(missing)"

    name: str
    kind: Literal["numeric", "categorical"]
    categories: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 1.0
    nullable: bool = False
    integer: bool = False
    strict: bool = False
    absent: tuple[str, ...] = ()
    form: str = ""
    cycle: str = ""
    of: str = ""

    @property
    def source(self) -> str:
        """The column of the file that it is read from."""
        return self.of or self.name

    @property
    def width(self) -> int:
        """How many entries of the encoded vector belong to this column."""
        return (len(self.categories) if self.kind == "categorical" else 1) + int(self.nullable)


@dataclass(frozen=True)
class FixedSum:
    """In every record the numeric ``columns`` add up to ``total``: a number, or another column's name."""

    columns: tuple[str, ...]
    total: float | str

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that takes part."""
        return (*self.columns, self.total) if isinstance(self.total, str) else self.columns


@dataclass(frozen=True)
class AudioFrame:
    """How a recording becomes a log-mel picture: its first ``seconds`` at ``rate`` Hz, ``mels`` × ``frames``."""

    rate: int
    seconds: float
    mels: int
    frames: int


@dataclass(frozen=True)
class Schema:
    """The shape and the meaning of a data set.

    ``x`` is always float32 in [0, 1] with shape ``(N, *shape)``, channels first. ``ranges`` holds the raw
    (low, high) of each channel, so that records can be turned back into the owner's units.
    ``utility`` and ``private`` map each label to its class names, in code order; ``sources`` maps a label to the
    column or expression of the file it is read from (a label not in it is the column of its own name). A label in
    ``numbers`` is a number and has no class names.
    ``declared`` is true if ranges, categories and classes were given from outside instead of read from the records;
    ``strict`` makes a signal outside such ranges a fault, and ``sums`` and ``rules`` are constraints that were declared
    with them.
    ``left_out`` names the columns of a table that are no part of a record, each with the reason.
    """

    kind: Kind
    shape: tuple[int, ...]
    ranges: tuple[tuple[float, float], ...] = ((0.0, 1.0),)
    utility: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    private: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    x_columns: tuple[str, ...] = ()
    id_column: str | None = None
    columns: tuple[Column, ...] = ()
    audio: AudioFrame | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    declared: bool = False
    strict: bool = False
    sums: tuple[FixedSum, ...] = ()
    rules: tuple[ColumnRule, ...] = ()
    numbers: Mapping[str, NumberScale] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Numbers in one record."""
        total = 1
        for side in self.shape:
            total *= side
        return total

    @property
    def is_vectors(self) -> bool:
        """Whether records are vectors, such as embeddings: the numbers of one column of lists."""
        one = self.kind == "table" and len(self.x_columns) == 1 and len(self.columns) > 1
        return one and self.columns[0].source != self.x_columns[0]

    def classes(self, label: str) -> tuple[str, ...]:
        """The class names of a utility or private label."""
        known = {**self.utility, **self.private}
        if label not in known:
            raise unknown("label", label, known)
        if label in self.numbers:
            middle = (self.numbers[label].low + self.numbers[label].high) / 2
            raise DataError(
                f"the label '{label}' is a number and has no classes: ask for '{label}:class', or a question such as "
                f"'{label} >= {middle:g}'."
            )
        return known[label]

    def width(self, label: str) -> int:
        """What a network answers about a label: a score for each class, or one number."""
        return 1 if label in self.numbers else len(self.classes(label))

    def groups(self, label: str, codes: npt.NDArray[np.int64]) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
        """Groups of records by a label, and the group of each: its classes, or four ranges of a number."""
        return self.numbers[label].quarters(codes) if label in self.numbers else (self.classes(label), codes)

    def with_classes(self, labels: Iterable[str]) -> tuple[str, ...]:
        """Those of the labels that have classes."""
        return tuple(label for label in labels if label not in self.numbers)

    def by_label(self, scores: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[np.float32]]:
        """Class scores (N, Σ classes) of the utility labels by label, one column of a number; scores of the first label
        alone are its own."""
        sizes = [self.width(label) for label in self.utility]
        if scores.shape[1] == sizes[0]:
            return {next(iter(self.utility)): scores}
        if scores.shape[1] != sum(sizes):
            raise RuleBroken(f"{scores.shape[1]} class scores of a record for labels of {sizes} classes.")
        ends = np.cumsum(sizes)
        return {label: scores[:, end - size : end] for label, size, end in zip(self.utility, sizes, ends, strict=True)}

    def label_text(self, label: str) -> str:
        """The label as a user would ask for it: its column, or ``name=question``."""
        source = self.sources.get(label, label)
        return label if source == label else f"{label}={source}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; ``from_json`` is the inverse."""
        return {
            "kind": self.kind,
            "shape": list(self.shape),
            "ranges": [list(pair) for pair in self.ranges],
            "utility": {name: list(classes) for name, classes in self.utility.items()},
            "private": {name: list(classes) for name, classes in self.private.items()},
            "x_columns": list(self.x_columns),
            "id_column": self.id_column,
            "columns": [_column_json(column) for column in self.columns],
            "audio": None if self.audio is None else {f.name: getattr(self.audio, f.name) for f in fields(self.audio)},
            "sources": dict(self.sources),
            "declared": self.declared,
            "strict": self.strict,
            "sums": [{"columns": list(one.columns), "total": one.total} for one in self.sums],
            "rules": [rule.to_json() for rule in self.rules],
            "numbers": {label: scale.to_json() for label, scale in self.numbers.items()},
            "left_out": dict(self.left_out),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Schema:
        """Rebuild a schema written by ``to_json``."""
        return cls(
            kind=value["kind"],
            shape=tuple(value["shape"]),
            ranges=tuple((float(low), float(high)) for low, high in value["ranges"]),
            utility={name: tuple(classes) for name, classes in value["utility"].items()},
            private={name: tuple(classes) for name, classes in value["private"].items()},
            x_columns=tuple(value["x_columns"]),
            id_column=value["id_column"],
            columns=tuple(
                Column(
                    **{
                        **column,
                        "categories": tuple(column["categories"]),
                        "absent": tuple(column.get("absent", ())),
                    }
                )
                for column in value["columns"]
            ),
            audio=None if value["audio"] is None else AudioFrame(**value["audio"]),
            sources=dict(value.get("sources", {})),
            declared=bool(value.get("declared", False)),
            strict=bool(value.get("strict", False)),
            sums=tuple(FixedSum(tuple(one["columns"]), one["total"]) for one in value.get("sums", ())),
            rules=tuple(ColumnRule.from_json(one) for one in value.get("rules", ())),
            numbers={label: NumberScale.from_json(one) for label, one in value.get("numbers", {}).items()},
            left_out=dict(value.get("left_out", {})),
        )


def _column_json(column: Column) -> dict[str, Any]:
    """What says how a text is read stands there only where it is needed: older versions read the rest."""
    values = {f.name: _plain(getattr(column, f.name)) for f in fields(column)}
    return {name: value for name, value in values.items() if value or name not in ("absent", "form", "cycle", "of")}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
