"""A label that is a number: how it is held as a whole number, and how a network is taught it.

A data set holds every label as int64. Of a class that is its place in the schema; of a number v it is

    code = round((v − low) / step),    v = low + step · code,

with a step so small that nothing is lost: 1/1024 where all values are whole, else 2⁻²⁴ of the range. ``GAP`` stands for
a number that is missing. A network is taught (v − mean) / deviation, with the mean and the deviation of the records
that it learns from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

GAP = -(2**62)
"""The code of a missing number."""
_FINEST, _WHOLE_STEP = 2.0**-24, 2.0**-10

Codes = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class NumberScale:
    """What is known of a numeric label.

    low, high        the range that was seen in training, or declared
    whole            whether all values are whole numbers
    strict           whether the range was declared, so that a number outside is a fault
    absent           what stands in the file where the question does not apply ("N"); such rows have no number
    mean, deviation  of the records that a mechanism was fitted to; None before. Two scales that differ in these alone
                     are equal: they say how a network is taught, and not what the label is
    """

    low: float
    high: float
    whole: bool = False
    strict: bool = False
    absent: str = ""
    mean: float | None = field(default=None, compare=False)
    deviation: float | None = field(default=None, compare=False)

    @property
    def step(self) -> float:
        return _WHOLE_STEP if self.whole else max((self.high - self.low) * _FINEST, np.finfo(np.float64).tiny)

    def codes(self, values: npt.ArrayLike) -> Codes:
        """Numbers as codes; NaN becomes ``GAP``."""
        numbers = np.asarray(values, dtype=np.float64)
        missing = np.isnan(numbers)
        steps = np.rint((np.where(missing, self.low, numbers) - self.low) / self.step)
        return np.where(missing, GAP, steps.astype(np.int64))

    def values(self, codes: npt.ArrayLike) -> Values:
        """Codes as numbers; ``GAP`` becomes NaN."""
        whole = np.asarray(codes, dtype=np.int64)
        return np.where(whole == GAP, np.nan, self.low + self.step * whole)

    def learnt(self, codes: Codes) -> NumberScale:
        """With the mean and the deviation of these records."""
        values = self.values(codes)
        return replace(self, mean=float(values.mean()), deviation=float(values.std()) or 1.0)

    def standard(self, codes: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """What a network is taught: mean 0 and deviation 1 over the records of ``learnt``."""
        mean, deviation = self._moments()
        return ((self.values(codes) - mean) / deviation).astype(np.float32)

    def raw(self, standard: npt.ArrayLike) -> Values:
        """What a network answers, in the label's own unit; the inverse of ``standard``."""
        mean, deviation = self._moments()
        return np.asarray(mean + deviation * np.asarray(standard, dtype=np.float64))

    def unit(self, codes: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """As a share of the range."""
        return ((self.values(codes) - self.low) / ((self.high - self.low) or 1.0)).astype(np.float32)

    def _moments(self) -> tuple[float, float]:
        assert self.mean is not None and self.deviation is not None  # whoever fits calls learnt() first
        return self.mean, self.deviation

    def quarters(self, codes: Codes) -> tuple[tuple[str, ...], Codes]:
        """Names and places of four groups of about equal size, by these codes: fewer where values repeat."""
        values = self.values(codes)
        edges = np.unique(np.quantile(values, [0.25, 0.5, 0.75]))
        place = np.searchsorted(edges, values, side="left").astype(np.int64)
        present, place = np.unique(place, return_inverse=True)
        ends = [(float(values[place == one].min()), float(values[place == one].max())) for one in range(len(present))]
        names = tuple(f"{low:g}" if low == high else f"{low:g} to {high:g}" for low, high in ends)
        return names, place.reshape(-1).astype(np.int64)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> NumberScale:
        known = {one.name for one in fields(cls)}
        return cls(**{name: found for name, found in value.items() if name in known})


def scale_of(values: npt.ArrayLike) -> NumberScale | None:
    """The scale of an array of which some values have a fraction; None of whole numbers and texts."""
    given = np.asarray(values)
    if given.dtype.kind != "f" or not np.isfinite(given).any():
        return None
    known = given[np.isfinite(given)]
    return None if (known == np.floor(known)).all() else NumberScale(float(known.min()), float(known.max()))
