"""λ₀, λ₁ … λ_M of Eq. 15: how much of the noise is for the record, and how much for each private label."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato.core.errors import UsageError
from sfumato.core.schema import Schema


def given_weights(lam: str | Sequence[float]) -> tuple[float, ...]:
    """The numbers that were given as text or as a list; none if that is empty."""
    if not isinstance(lam, str):
        return tuple(float(each) for each in lam)
    try:
        return tuple(float(each) for each in lam.split(",") if each.strip())
    except ValueError:
        raise UsageError(f"ars: lam={lam}: give numbers such as 0.5,0.25,0.25.") from None


def check_weights(given: Sequence[float]) -> None:
    """Raise ``UsageError`` unless they are parts of a whole."""
    if given and not (all(each >= 0 for each in given) and math.isclose(sum(given), 1.0, abs_tol=0.011)):
        said = ",".join(f"{each:g}" for each in given)
        raise UsageError(
            f"ars: lam={said}: give numbers from 0 on that add up to 1 (Eq. 15); these make {sum(given):g}."
        )


def weights_for(given: Sequence[float], schema: Schema) -> tuple[float, ...]:
    """One for the record and one for each private label; without any, ½ and the rest in equal parts."""
    labels = tuple(schema.private)
    if not given:
        return (0.5, *(0.5 / len(labels) for _ in labels)) if labels else (1.0,)
    if len(given) != len(labels) + 1:
        raise UsageError(
            f"ars: lam has {len(given)} numbers: give one for the record and one for each private label "
            f"({', '.join(labels) or 'there is none'})."
        )
    return tuple(each / sum(given) for each in given)  # 0.33,0.33,0.33 is meant as thirds; the noise stays below ε
