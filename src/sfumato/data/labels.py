"""Encoding label columns and expressions as integer codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import IntArray
from sfumato.data.encoding.list_cells import first_null
from sfumato.data.encoding.tables import as_numbers, as_text, first_not_number, is_text
from sfumato.data.file_errors import Place
from sfumato.data.label_expressions import BOOLEAN_CLASSES, Expression
from sfumato.data.limits import MAX_CLASSES


def class_order(values: Iterable[str]) -> tuple[str, ...]:
    """Sort class names into code order: by number if all are whole numbers, else by name."""
    names = set(values)
    if all(_whole(name) for name in names):
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    return tuple(sorted(names))


def values_of(expression: Expression, array: Any, file: str, first_row: int) -> Any:
    """Return the class of each record as arrow text. A missing value raises."""
    where = Place(file, expression.column)
    import pyarrow as pa
    import pyarrow.types as pt

    if is_unusable(array.type):
        what = f"values of type {array.type} cannot be a label"
        raise where.fault(what, "use a column of text, whole numbers or booleans")
    text = as_text(array)
    missing = first_null(text)
    if missing is not None:
        what = f"the label '{expression.name}' is missing"
        raise where.below(first_row + missing).fault(what, "fill it in or remove the row")
    if expression.derived:
        answer = _answer(expression, array, text, where.below(first_row))
        return pa.array(np.where(answer, BOOLEAN_CLASSES[1], BOOLEAN_CLASSES[0]).tolist(), pa.string())
    if pt.is_floating(array.type):
        numbers = as_numbers(array)
        broken = numbers is not None and numbers != np.floor(numbers)
        if np.any(broken):
            what = "a label needs classes, but this column measures a quantity"
            remedy = f"use a comparison as the label, for example '{expression.column} >= 0.5'"
            raise where.below(first_row + int(np.argmax(broken))).fault(what, remedy)
    return text


def is_unusable(arrow_type: Any) -> bool:
    """Return whether a column of this type can never be a label."""
    import pyarrow.types as pt

    return bool(pt.is_nested(arrow_type) or pt.is_binary(arrow_type) or pt.is_large_binary(arrow_type))


def _answer(expression: Expression, array: Any, text: Any, where: Place) -> npt.NDArray[np.bool_]:
    op = expression.op
    if op in ("in", "not in", "==", "!="):
        wanted = np.isin(np.array(text.to_pylist(), dtype=object).astype(str), expression.values)
        return wanted if op in ("in", "==") else ~wanted
    numbers = as_numbers(array)
    if numbers is None:
        place, value = first_not_number(array)
        what = f"'{value}' is not a number, as '{expression.text()}' requires"
        raise where.below(place).fault(what, "correct it or use another expression")
    value_text = expression.values[0]
    if op == "%":
        return np.asarray(np.mod(numbers, expression.modulus) == float(value_text))
    compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[op]
    return np.asarray(compare(numbers, float(value_text)))


class ClassFit:
    """Learns the classes of one label, a batch at a time; ``declared`` names override what is seen."""

    def __init__(self, expression: Expression, declared: Sequence[str], file: str) -> None:
        self._expression = expression
        self._file = file
        self._declared = BOOLEAN_CLASSES if expression.derived else tuple(declared)
        self._seen: set[str] = set()

    def add(self, first_row: int, array: Any) -> None:
        """Add a batch of records."""
        import pyarrow.compute as pc

        values = values_of(self._expression, array, self._file, first_row)
        if self._declared:
            return
        self._seen.update(pc.unique(values).to_pylist())
        if len(self._seen) > MAX_CLASSES:
            remedy = "choose another label, or use an expression such as a comparison"
            raise Place(self._file, self._expression.column).fault(f"has more than {MAX_CLASSES} classes", remedy)

    def classes(self) -> tuple[str, ...]:
        """Return the class names in code order."""
        return self._declared or class_order(self._seen)


def encode_labels(expression: Expression, array: Any, classes: Sequence[str], file: str, first_row: int) -> IntArray:
    """Encode a label. A class that training never had raises.

    Whole numbers in the file stand for themselves if the class names are numbers, else they index the class names.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    text = values_of(expression, array, file, first_row)
    by_place = (
        not expression.derived
        and not is_text(array.type)
        and not all(_whole(name) for name in classes)
        and not pa.types.is_boolean(array.type)
    )
    names = [str(place) for place in range(len(classes))] if by_place else list(classes)
    found = pc.fill_null(pc.index_in(text, value_set=pa.array(names, pa.string())), -1)
    codes: IntArray = found.to_numpy(zero_copy_only=False).astype(np.int64)
    if (codes < 0).any():
        place = int(np.argmax(codes < 0))
        shown = ", ".join(classes[:8]) + (", …" if len(classes) > 8 else "")
        what = f"'{text[place].as_py()}' is not a class of '{expression.name}' ({shown})"
        raise Place(file, expression.column, first_row + place).fault(what, "correct it or remove the row")
    return codes


def _whole(name: str) -> bool:
    return name.removeprefix("-").isdigit()
