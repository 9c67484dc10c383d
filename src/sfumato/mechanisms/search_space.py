"""What somebody who does not know a mechanism needs to choose it and its settings: declared next to its parameters.

class RAN(EncoderMechanism):
    searched = (SearchSpace("features", against=("reconstruction",), knobs={"lam": KnobRange(0.01, 0.9)}, …),)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from sfumato.core.schema import Kind

Leaves = Literal["features", "records", "rows", "messages"]
LEAVES: tuple[Leaves, ...] = get_args(Leaves)
"""What a receiver gets: numbers that stand for a record, a changed record, rows of nobody, or encrypted messages."""


@dataclass(frozen=True)
class KnobRange:
    """Numbers from ``low`` to ``high``; ``log`` if ratios count, ``whole`` without fractions."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def spaced(self, count: int) -> tuple[float, ...]:
        """So many values from end to end, for a grid."""
        steps = [number / max(1, count - 1) for number in range(count)]
        ends = (self.low, self.high)
        found = [ends[0] * (ends[1] / ends[0]) ** t if self.log else ends[0] + (ends[1] - ends[0]) * t for t in steps]
        return tuple(dict.fromkeys(float(round(one)) if self.whole else one for one in found))


@dataclass(frozen=True)
class SearchSpace:
    """One way to use a mechanism.

    leaves   what a receiver gets
    against  the threats that it does something about; a limit on another one is out of its hands
    knobs    hyper-parameters by which utility is traded against them: a range, or a few values
    starts   settings that are worth trying first, most promising first
    fixed    hyper-parameters that make it this way of using the mechanism
    kinds    the kinds of data that it is made for
    promise  the kind of guarantee
    cost     roughly how long a fit takes beside those of the others: cheap ones are tried first
    """

    leaves: Leaves
    against: tuple[str, ...]
    knobs: Mapping[str, KnobRange | tuple[Any, ...]] = field(default_factory=dict)
    starts: tuple[Mapping[str, Any], ...] = ({},)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    kinds: tuple[Kind, ...] = get_args(Kind)
    promise: str = "empirical"
    cost: float = 1.0
