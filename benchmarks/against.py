"""One line of the page of peers: what we need, what they need, and who is ahead."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.interleaved import Ratio, figure

_QUARTILE = 0.6745
"""Of the normal distribution, in deviations."""


@dataclass(frozen=True)
class Against:
    """``ratio`` is ours over theirs. ``note`` says what differs between the two beside the figure, if anything."""

    peer: str
    task: str
    quantity: str
    ours: float
    theirs: float
    ratio: Ratio
    better: Literal["lower", "higher"] = "lower"
    note: str = ""

    @classmethod
    def once(
        cls,
        peer: str,
        task: str,
        quantity: str,
        ours: float,
        theirs: float,
        *,
        better: Literal["lower", "higher"] = "lower",
        note: str = "",
    ) -> Against:
        """What is counted, or was measured once: a ratio without spread."""
        return cls(peer, task, quantity, ours, theirs, Ratio.of([ours / theirs]), better, note)

    @classmethod
    def shares(
        cls, peer: str, task: str, quantity: str, ours: float, theirs: float, *, counts: tuple[int, int]
    ) -> Against:
        """Shares of so many records that came out right; the quartiles are those of drawing the records."""
        error = math.sqrt(
            sum((1 - share) / (share * count) for share, count in zip((ours, theirs), counts, strict=True) if share)
        )
        middle, half = ours / theirs, _QUARTILE * error
        ratio = Ratio(middle, (middle * math.exp(-half), middle * math.exp(half)), 1)
        return cls(peer, task, quantity, ours, theirs, ratio, "higher")

    @property
    def ahead(self) -> Literal["sfumato", "peer", "even"]:
        """Who is better, if both quartiles say the same; equal figures are even."""
        ends = self.ratio.quartiles
        if all(end < 1 for end in ends):
            return "sfumato" if self.better == "lower" else "peer"
        if all(end > 1 for end in ends):
            return "peer" if self.better == "lower" else "sfumato"
        return "even"

    def to_json(self) -> dict[str, Any]:
        return {
            "peer": self.peer,
            "task": self.task,
            "quantity": self.quantity,
            "better": self.better,
            "ours": figure(self.ours),
            "theirs": figure(self.theirs),
            "ratio": self.ratio.to_json(),
            "ahead": self.ahead,
            "note": self.note,
        }
