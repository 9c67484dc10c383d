"""One line of the page of peers: what we need, what they need, and who is ahead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.interleaved import Ratio, figure


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
