"""Rows of mixed columns as one number a column, so that numbers and categories are compared sensibly.

A number is its rank among the values that anybody holds, in [0, 1]; a category is its code; a missing value of a number
stands in a column of its own, ``companion``. The distance of two rows is the mean over the columns of |rank − rank| and
of 1 where categories differ (Gower's).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CodedColumn:
    """One column: a number, or one of so many ``categories``. ``companion`` marks where another one is missing,
    ``private`` what nobody may infer; ``values`` are what the codes of a private column stand for."""

    name: str
    categories: int = 0
    companion: bool = False
    private: bool = False
    values: tuple[str, ...] = ()

    @property
    def number(self) -> bool:
        return self.categories == 0


@dataclass(frozen=True)
class Ranks:
    """The known ``values`` of a number in order, and their ``places``; what lies between them has a rank between."""

    values: Doubles
    places: Doubles

    @classmethod
    def of(cls, parts: Sequence[Doubles]) -> Ranks:
        """The ranks that ``common_ranks`` gives."""
        known = [~np.isnan(part) for part in parts]
        numbers = np.concatenate([part[here] for part, here in zip(parts, known, strict=True)])
        if not len(numbers):
            return cls(np.zeros(1), np.full(1, 0.5))
        ranks = np.concatenate([rank[here] for rank, here in zip(common_ranks(parts), known, strict=True)])
        values, first = np.unique(numbers, return_index=True)
        return cls(values, ranks[first])

    def __call__(self, numbers: Doubles) -> Doubles:
        """NaN is missing and gets ½."""
        return np.where(np.isnan(numbers), 0.5, np.interp(numbers, self.values, self.places))


def common_ranks(parts: Sequence[Doubles]) -> list[Doubles]:
    """Each value's place, in [0, 1], in the distribution to which every part contributes alike; equal values share it.

    NaN is missing and gets ½.
    """
    known = [part[~np.isnan(part)] for part in parts]
    filled = [values for values in known if len(values)]
    if not filled:
        return [np.full(len(part), 0.5) for part in parts]
    values, place = np.unique(np.concatenate(filled), return_inverse=True)
    weights = np.concatenate([np.full(len(values), 1.0 / len(values)) for values in filled]) / len(filled)
    mass = np.bincount(place, weights, minlength=len(values))
    middle = np.cumsum(mass) - mass / 2.0
    return [
        np.where(np.isnan(part), 0.5, middle[np.searchsorted(values, part).clip(max=len(values) - 1)]) for part in parts
    ]
