"""What a mechanism asks of records and private labels before it works on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.errors import DataError, UsageError
from sfumato.core.number_scale import GAP, NumberScale
from sfumato.core.schema import Schema


def check_records(x: FloatArray, schema: Schema, name: str) -> None:
    """Shape and values that the schema allows, or a ``DataError`` naming the first bad record."""
    if x.shape[1:] != schema.shape:
        raise DataError(f"{name}: records have shape {x.shape[1:]}, the mechanism was built for {schema.shape}.")
    if len(x) == 0:
        raise DataError(f"{name} holds no records.")
    low, high = x.min(), x.max()  # NaN and infinities show here, at a fraction of isfinite's memory
    if not (low >= 0.0 and high <= 1.0):
        bad = ~((x >= 0.0) & (x <= 1.0)).reshape(len(x), -1).all(axis=1)
        row = int(np.argmax(bad))
        raise DataError(f"{name}: record {row} holds NaN, infinite or out-of-range values; records lie in [0, 1].")


def check_private(
    private: Mapping[str, npt.ArrayLike], schema: Schema, records: int, mechanism: str, name: str
) -> dict[str, IntArray]:
    """The codes of every private label of the schema, one a record; what is missing or wrong is named."""
    codes: dict[str, IntArray] = {}
    for label, classes in schema.private.items():
        if label not in private:
            raise UsageError(
                f"{mechanism} needs the private label '{label}' of every record: "
                f"give transform(X, private={{'{label}': codes}})."
            )
        given = np.asarray(private[label])
        if given.shape != (records,):
            shape = f"has shape {given.shape} for {records} records"
            raise DataError(f"{name}: private label '{label}' {shape}: give one code a record.")
        if label in schema.numbers:
            codes[label] = _check_numbers(given, schema.numbers[label], label, name)
            continue
        whole = given.dtype.kind in "biu"
        bad = (given < 0) | (given >= len(classes)) if whole else np.ones(records, dtype=bool)
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(
                f"{name}: record {row} has {given.tolist()[row]!r} as private label '{label}': "
                f"give a whole number from 0 to {len(classes) - 1} ({', '.join(classes[:8])})."
            )
        codes[label] = given.astype(np.int64)
    return codes


def _check_numbers(given: npt.NDArray[Any], scale: NumberScale, label: str, name: str) -> IntArray:
    """The codes of a private label that is a number; one that is missing is named."""
    codes = scale.codes(given) if given.dtype.kind == "f" else given.astype(np.int64)
    if (gaps := codes == GAP).any():
        raise DataError(
            f"{name}: record {int(np.argmax(gaps))} has no number as private label '{label}': fill it in or remove "
            "the record."
        )
    return codes
