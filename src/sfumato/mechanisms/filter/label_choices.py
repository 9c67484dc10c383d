"""What a user chose to hide and to serve, checked before any training."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from sfumato.core.dataset import IntArray
from sfumato.core.errors import DataError


def refuse_impossible(
    private: Mapping[str, IntArray], utility: Mapping[str, IntArray], who: str, numbers: Collection[str] = ()
) -> None:
    """Raise if a label has one value only, or if a private label follows from a served one.

    A number that few records share always does, so ``numbers`` are asked only whether they are the same.
    """
    for label, codes in (*private.items(), *utility.items()):
        if len(np.unique(codes)) < 2:
            raise DataError(
                f"{who}: column '{label}' has one value only: there is nothing to hide or to serve. Choose another "
                "label, or give more records."
            )
    for label, codes in private.items():
        for served, useful in utility.items():
            same = served in numbers and (label not in numbers or not np.array_equal(codes, useful))
            if not same and follows(codes, useful):
                raise DataError(
                    f"{who}: the private column '{label}' is a function of the utility column '{served}': whoever "
                    f"learns '{served}' knows it. Serve or hide something else."
                )


def follows(codes: IntArray, given: IntArray) -> bool:
    """Whether each value of ``given`` goes with a single value of ``codes``."""
    pairs = np.unique(np.stack([given, codes]), axis=1)
    return bool(pairs.shape[1] == len(np.unique(given)))
