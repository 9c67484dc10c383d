"""How often each class occurs, and drawing classes as often."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sfumato.privacy.ledger import Ask, Plan
from sfumato.privacy.query_counter import Counter

_NAME = "class sizes"


class Classes(nn.Module):
    """The share of every class (k,), learnt from one noisy count; equal until then."""

    shares: Tensor

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.register_buffer("shares", torch.full((classes,), 1.0 / classes))

    def beside(self, steps: Ask) -> tuple[Ask, ...]:
        """The count, if there is anything to count, with 20 times the noise multiplier of one of these steps.

        ``calibrated`` gives noise in proportion to rate·√(count/share).
        """
        if len(self.shares) == 1:
            return ()
        return (Ask("classes", _NAME, steps.share / (steps.count * (20.0 * steps.rate) ** 2)),)

    def learn(self, counter: Counter) -> None:
        """One record is 1 in one class: sensitivity 1."""
        if len(self.shares) > 1:
            counts = counter.sums(
                _NAME, lambda records: torch.ones(len(records), 1), 1.0, groups=lambda r: r.y, size=len(self.shares)
            )
            self.set(torch.as_tensor(counts).squeeze(1))

    def set(self, counts: Tensor) -> None:
        """Shares from counts that may be noisy, negative even."""
        counts = counts.clamp(min=0.0)
        if counts.sum() > 0.0:
            self.shares.copy_(counts / counts.sum())

    def least(self, plan: Plan) -> float:
        """Three standard deviations of the count: fewer records may look like none."""
        return next((3.0 * ask.noise for ask in plan if ask.name == _NAME), 0.0)

    def draw(self, rows: int, generator: torch.Generator, only: int | None = None) -> Tensor:
        """So many class codes (rows,), all of one class if ``only`` names it."""
        if only is not None:
            return torch.full((rows,), only)
        return torch.multinomial(self.shares, rows, replacement=True, generator=generator)
