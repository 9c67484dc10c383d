"""The distortion budget: E D(q_f ‖ q_e) ≤ b (Eq. 3), measured on records that training did not see, and kept."""

from __future__ import annotations

import torch
from torch import Tensor

from sfumato.core.errors import UsageError
from sfumato.mechanisms.filter.filter_networks import Filters
from sfumato.privacy.divergence import Divergence, divergence

_DRAWS = 8
"""How many ε₀ a record is measured with."""

_MARGIN = 3.0
"""Standard errors between the measured mean and b: new records must keep the budget, too."""

_HALVINGS = 12


@torch.no_grad()
def spent(filters: Filters, mean: Tensor, variance: Tensor, y: Tensor, kind: Divergence, seed: int) -> Tensor:
    """The divergence of each record's release from q(z|x), (U, B), as a mean over ε₀.

    The mean over ε₀ bounds the divergence of the whole mixture from above (f-divergences are jointly convex).
    """
    generator = torch.Generator().manual_seed(seed)
    draws = _DRAWS if filters.chance else 1
    total = torch.zeros(mean.shape[:2])
    for _ in range(draws):
        chance = torch.randn(1, mean.shape[1], filters.chance, generator=generator)
        shift, factor = filters(mean, y, chance)
        total += divergence(kind, shift, variance, factor[:, None]) / draws
    return total


def mean_spent(
    filters: Filters, mean: Tensor, variance: Tensor, y: Tensor, mine: Tensor, kind: Divergence, seed: int
) -> Tensor:
    """The mean of ``spent`` over each user's own records, (U,); ``mine`` (U, B) says which these are."""
    values = spent(filters, mean, variance, y, kind, seed)
    return torch.where(mine, values, 0.0).sum(1) / mine.sum(1)


@torch.no_grad()
def enforce(
    filters: Filters,
    mean: Tensor,
    variance: Tensor,
    y: Tensor,
    mine: Tensor,
    kind: Divergence,
    budget: Tensor,
    seed: int,
    share: float = 1.0,
) -> Tensor:
    """Shrink each user's perturbation until held-out records keep ``share`` of the budget (U,); what they spend, (U,).

    Records are (U, B, …); ``mine`` (U, B) says which of them count. Every divergence grows with t, so bisection finds
    the largest t whose mean, plus a margin for new records, is within the budget.
    """
    count = mine.sum(1)

    def over(shrink: Tensor) -> Tensor:
        kept = filters.scale.clone()
        filters.scale.mul_(shrink)
        values = torch.where(mine, spent(filters, mean, variance, y, kind, seed), 0.0)
        filters.scale.copy_(kept)
        average = values.sum(1) / count
        deviation = torch.where(mine, values - average[:, None], 0.0).square().sum(1) / count
        return ~(average + _MARGIN * (deviation / count).sqrt() <= share * budget)  # what has no finite value is over

    low, high = torch.zeros_like(budget), torch.ones_like(budget)
    fits = ~over(high)
    for _ in range(_HALVINGS if not fits.all() else 0):
        middle = (low + high) / 2
        too_much = over(middle)
        low, high = torch.where(too_much, low, middle), torch.where(too_much, middle, high)
    filters.scale.mul_(torch.where(fits, torch.ones_like(low), low))
    if (filters.scale == 0).any():
        out_of_reach = float(budget[filters.scale == 0].min())
        raise UsageError(
            f"filter: budget={out_of_reach:g} ({kind}) is out of reach: a thousandth of the perturbation exceeds it, "
            "and the latents would leave as they are. Give a larger budget, or another divergence."
        )
    return mean_spent(filters, mean, variance, y, mine, kind, seed)
