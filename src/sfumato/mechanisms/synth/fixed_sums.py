"""Declared fixed sums, kept in drawn records."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sfumato.core.schema import Column, FixedSum

_PASSES = 64


def keep_sums(
    sums: Sequence[FixedSum], columns: Sequence[Column], raw: dict[str, Tensor], missing: dict[str, Tensor]
) -> None:
    """Move raw values (n,) as little as is simple, within their ranges, until every sum holds; in place.

    A total that is a column follows its parts as far as its range allows, then the parts follow. Records in which a
    part is missing are left alone. Sums that share columns are kept one after the other, the last one exactly.
    """
    by_name = {column.name: column for column in columns}
    for one in sums:
        there = ~torch.stack([missing[name] for name in one.names]).any(dim=0)
        parts = [by_name[name] for name in one.columns]
        values = torch.stack([raw[name] for name in one.columns], dim=1)  # (n, parts)
        low, high = (
            torch.tensor([getattr(part, end) for part in parts], dtype=torch.float64) for end in ("low", "high")
        )
        if isinstance(one.total, str):
            total = by_name[one.total]
            goal = values.sum(dim=1).clamp(max(total.low, float(low.sum())), min(total.high, float(high.sum())))
            goal = goal.round() if total.integer else goal
            raw[one.total] = torch.where(there, goal, raw[one.total])
        else:
            goal = torch.full((len(values),), one.total, dtype=torch.float64)
        whole = torch.tensor([part.integer for part in parts])
        moved = _moved(values, goal, low, high, whole)
        for place, name in enumerate(one.columns):
            raw[name] = torch.where(there, moved[:, place], raw[name])


def _moved(values: Tensor, goal: Tensor, low: Tensor, high: Tensor, whole: Tensor) -> Tensor:
    """Parts (n, k) with Σ = goal: each gives or takes in proportion to its room, whole numbers in whole steps."""
    lack = (goal - values.sum(dim=1)).unsqueeze(1)
    room = torch.where(lack > 0, high - values, values - low)
    share = room / room.sum(dim=1, keepdim=True).clamp(min=1e-12)
    values = values + lack * share
    values = torch.where(whole, values.round(), values).clamp(low, high)
    for _ in range(_PASSES):  # what rounding left over: to broken numbers at once, else one unit a time
        lack = goal - values.sum(dim=1)
        if float(lack.abs().max()) < 1e-9:
            break
        values = values + _next(values, lack, low, high, whole)
    return values


def _next(values: Tensor, lack: Tensor, low: Tensor, high: Tensor, whole: Tensor) -> Tensor:
    """For each record, the step of the one part with most room for it."""
    room = torch.where(lack.unsqueeze(1) > 0, high - values, values - low)
    able = torch.where(whole, room.floor(), room)
    first = torch.where(whole, able.clamp(max=1.0) * 1e-3, able)  # broken numbers go first
    chosen = (first + 1e-9 * able).argmax(dim=1, keepdim=True)
    reach = able.gather(1, chosen).squeeze(1)
    step = torch.minimum(lack.abs(), reach)
    step = torch.where(whole[chosen.squeeze(1)], torch.minimum(step.floor(), torch.ones_like(step)), step)
    return torch.zeros_like(values).scatter_(1, chosen, (step * lack.sign()).unsqueeze(1))
