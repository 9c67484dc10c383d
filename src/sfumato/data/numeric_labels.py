"""Labels that are numbers: how one is told from a class, and how it is read.

A label is a number if its column measures a quantity: numbers of which some have a fraction, or more different whole
numbers than ``LEVELS``. Text, yes-or-no questions, and codes whose names are known are classes. Where the rule is
wrong, ``"age:class"`` and ``"score:number"`` say what is meant; in a domain file the kind of the column says it.

A row without a number is left out, and counted. In a text file one text may stand for "not applicable" (``N`` where
children have no income); with more such texts the column is a category.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import IntArray
from sfumato.core.errors import DataError
from sfumato.core.number_scale import GAP, NumberScale
from sfumato.core.schema import Column, Schema
from sfumato.data.encoding.tables import as_numbers, as_text, is_number, is_text
from sfumato.data.file_errors import Place, Problem
from sfumato.data.label_expressions import CLASS_KIND, NUMBER_KIND, Expression
from sfumato.data.label_expressions import is_number as reads_as_number
from sfumato.data.labels import ClassFit, encode_labels, is_unusable
from sfumato.data.readers.source import Source
from sfumato.data.registry import Entry

LEVELS = 64
"""So many different whole numbers can still be codes of classes."""
_SHOWN = 3

Floats = npt.NDArray[np.float64]


class LabelFit:
    """Learns one label, a batch at a time: its classes, or its range where it is a number.

    ``untyped`` says that numbers of the file are text, ``coded`` that whole numbers are known to be codes of classes.
    """

    def __init__(
        self, expression: Expression, declared: Sequence[str], file: str, *, untyped: bool, coded: bool = False
    ) -> None:
        self._expression, self._file = expression, file
        self._classes = ClassFit(expression, declared, file)
        self._untyped, self._coded = untyped, coded
        self._open = not (expression.derived or declared or expression.kind == CLASS_KIND)
        self._refused: DataError | None = None
        self._levels: set[float] = set()
        self._low, self._high, self._whole = np.inf, -np.inf, True
        self._others: dict[str, int] = {}
        self.gaps = 0

    def add(self, first_row: int, array: Any) -> None:
        """Add a batch of records."""
        if not self._may_be_number(array):
            self._open = False
        if not self._open:
            if self._refused is not None:
                raise self._refused
            self._classes.add(first_row, array)
            return
        self._look(first_row, array)
        if self._refused is None and self._expression.kind != NUMBER_KIND:
            try:
                self._classes.add(first_row, array)
            except DataError as error:  # it may turn out to be a number
                self._refused = error

    def scale(self) -> NumberScale | None:
        """What is known of the number; None if the label has classes."""
        if not self._open:
            return None
        wanted = self._expression.kind == NUMBER_KIND
        if len(self._others) > 1 or not self._levels or not (wanted or self._quantity):
            if wanted:
                raise self._no_number()
            return None
        return NumberScale(float(self._low), float(self._high), self._whole, absent=next(iter(self._others), ""))

    def classes(self) -> tuple[str, ...]:
        """The class names in code order; none of a number."""
        if self.scale() is not None:
            return ()
        if self._refused is not None:
            raise self._refused
        return self._classes.classes()

    @property
    def _quantity(self) -> bool:
        return not self._whole or (len(self._levels) > LEVELS and not self._coded)

    def _may_be_number(self, array: Any) -> bool:
        if is_unusable(array.type):
            return False
        return is_number(array.type) or (
            is_text(array.type) and (self._untyped or self._expression.kind == NUMBER_KIND)
        )

    def _look(self, first_row: int, array: Any) -> None:
        numbers, others = _read(array)
        if (infinite := np.isinf(numbers)).any():
            where = Place(self._file, self._expression.column, first_row + int(np.argmax(infinite)))
            raise where.fault("the value is infinite", "correct it or remove the row")
        present = numbers[~np.isnan(numbers)]
        self.gaps += len(numbers) - len(present)
        for text, place in others.items():
            if len(self._others) <= _SHOWN:
                self._others.setdefault(text, first_row + place)
        if len(present):
            self._low, self._high = min(self._low, present.min()), max(self._high, present.max())
            self._whole = self._whole and bool((present == np.floor(present)).all())
            if len(self._levels) <= LEVELS:
                self._levels.update(np.unique(present).tolist())

    def _no_number(self) -> DataError:
        where = Place(self._file, self._expression.column)
        if not self._levels:
            return where.fault("holds no number, as ':number' requires", "choose another label")
        shown = ", ".join(f"'{text}'" for text in list(self._others)[:_SHOWN])
        what = f"{shown} are no numbers, as ':number' requires"
        return where.below(list(self._others.values())[1]).fault(what, "leave one such code, or leave the values empty")


def fit_of(label: Expression, source: Source, entry: Entry | None) -> LabelFit:
    """Learns a label of this source; the whole numbers of pictures and recordings in a named set are codes."""
    import pyarrow.types as pt

    names = {**source.class_names, **(entry.classes if entry else {})}
    whole = pt.is_integer(source.schema.field(label.column).type)  # names apply only to codes
    coded = entry is not None and entry.kind != "table"
    declared = names.get(label.column, ()) if whole else ()
    return LabelFit(label, declared, source.label, untyped=source.untyped, coded=coded)


def number_problems(scale: NumberScale, gaps: int, where: Place) -> Iterator[Problem]:
    """What ``data check`` says about a label that is a number."""
    if scale.low == scale.high:
        yield where.error(f"the label is always {scale.low:g}", "use another label")
    elif gaps:
        code = f" ('{scale.absent}' counts as none)" if scale.absent else ""
        yield where.warning(
            f"{gaps:,} rows have no number{code} and are left out", "fill them in, or use another label"
        )


def declared_scale(expression: Expression, column: Column | None) -> NumberScale | None:
    """The scale of a label whose column a domain declares; None if it has classes."""
    if expression.derived or expression.kind == CLASS_KIND or column is None or column.kind != "numeric":
        return None
    few = column.integer and column.high - column.low < LEVELS
    if few and expression.kind != NUMBER_KIND and not column.form:
        return None
    if column.form:
        remedy = "leave it out of the labels, or declare it categorical"
        raise DataError(f"the label '{expression.name}' is a date, which cannot be a label: {remedy}.")
    if len(column.absent) > 1:
        raise DataError(f"the label '{expression.name}' has several texts for a missing number: leave one.")
    return NumberScale(column.low, column.high, column.integer, strict=column.strict, absent="".join(column.absent))


def column_of(name: str, scale: NumberScale) -> Column:
    """A numeric label as a domain declares it."""
    absent = (scale.absent,) if scale.absent else ()
    return Column(
        name, "numeric", low=scale.low, high=scale.high, integer=scale.whole, strict=scale.strict, absent=absent
    )


def encode_label(expression: Expression, array: Any, schema: Schema, file: str, first_row: int) -> IntArray:
    """The codes of a batch: places of classes, or steps of a number with ``GAP`` where it is missing."""
    scale = schema.numbers.get(expression.name)
    if scale is None:
        return encode_labels(expression, array, schema.classes(expression.name), file, first_row)
    where = Place(file, expression.column, first_row)
    if not (is_number(array.type) or is_text(array.type)):
        raise where.fault(f"values of type {array.type} are no numbers", "provide a column like that of training")
    numbers, others = _read(array)
    strange = next((text for text in others if text != scale.absent), None)
    if strange is not None:
        what = f"'{strange}' is not a number, and '{expression.name}' is one"
        raise where.below(others[strange]).fault(what, "correct it, or leave it empty if it is missing")
    if (infinite := np.isinf(numbers)).any():
        raise where.below(int(np.argmax(infinite))).fault("the value is infinite", "correct it or remove the row")
    outside = (numbers < scale.low) | (numbers > scale.high)
    if scale.strict and outside.any():
        place = int(np.argmax(outside))
        what = f"{numbers[place]:g} lies outside the declared range {scale.low:g} to {scale.high:g}"
        raise where.below(place).fault(what, "correct it, remove the row, or declare clip = true")
    return scale.codes(numbers)


def as_column(codes: IntArray, scale: NumberScale) -> Any:
    """The numbers of these codes as an arrow column: null where one is missing, whole where all were."""
    import pyarrow as pa

    values, missing = scale.values(codes), codes == GAP
    if scale.whole and (values[~missing] == np.floor(values[~missing])).all():
        return pa.array(np.where(missing, 0, values).astype(np.int64), mask=missing)
    return pa.array(values, mask=missing)


def _read(array: Any) -> tuple[Floats, Mapping[str, int]]:
    """The numbers of a column, NaN where there is none, and each text that is no number with its first place."""
    numbers = as_numbers(array)
    if numbers is not None:
        return numbers, {}
    import pyarrow.compute as pc

    text = as_text(array)
    encoded = pc.dictionary_encode(text)
    known = [
        value if value is not None and reads_as_number(value) else None for value in encoded.dictionary.to_pylist()
    ]
    values = np.array([np.nan if value is None else float(value) for value in known] + [np.nan])
    codes = pc.fill_null(encoded.indices, len(known)).to_numpy(zero_copy_only=False)
    others = {
        value: int(np.argmax(codes == place))
        for place, value in enumerate(encoded.dictionary.to_pylist())
        if value is not None and known[place] is None
    }
    return np.asarray(values[codes], dtype=np.float64), others
