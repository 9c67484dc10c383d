"""How often each brightness occurs, so that drawn pictures can be given the contrast of real ones."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from sfumato.privacy.ledger import Ask
from sfumato.privacy.query_counter import Counter, Records

BINS = 64
_NAME = "brightness histogram"
_LEVELS = 256


class Tones(nn.Module):
    """A monotone map of brightness for every channel: drawn value → the real value of the same rank.

    wanted (C, BINS)   the noisy histogram of real records
    curve (C, LEVELS)  the map, for drawn values from −½ to 1½
    """

    wanted: Tensor
    curve: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.register_buffer("wanted", torch.full((channels, BINS), 1.0 / BINS, dtype=torch.float64))
        self.register_buffer("curve", torch.linspace(0.0, 1.0, _LEVELS).repeat(channels, 1))

    def ask(self, share: float) -> Ask:
        return Ask("axes", _NAME, share)

    def learn(self, counter: Counter) -> None:
        """One sum: a record adds the histogram of each of its channels, of length ≤ 1 each."""

        def histograms(records: Records) -> Tensor:
            values = records.x.reshape(len(records), self.channels, -1)
            bins = (values * BINS).long().clamp(max=BINS - 1)
            counts = torch.zeros(len(records), self.channels, BINS).scatter_add_(2, bins, torch.ones_like(values))
            return (counts / values.shape[2]).flatten(1)

        total = counter.sums(_NAME, histograms, math.sqrt(self.channels))[0]
        found = torch.as_tensor(total).view(self.channels, BINS).clamp(min=0.0) + 1e-9
        self.wanted.copy_(found / found.sum(dim=1, keepdim=True))

    def match(self, drawn: Tensor) -> None:
        """Set the curve so that ``drawn`` records (n, C, …) get the wanted histogram."""
        levels = torch.linspace(-0.5, 1.5, _LEVELS)
        edges = torch.arange(BINS + 1, dtype=torch.float64) / BINS
        for channel in range(self.channels):
            values = drawn[:, channel].flatten().sort().values
            ranks = torch.searchsorted(values, levels).double() / len(values)  # share of drawn values below each level
            below = torch.cat([torch.zeros(1, dtype=torch.float64), self.wanted[channel].cumsum(0)])
            below[-1] = 1.0
            place = torch.searchsorted(below, ranks.clamp(0.0, 1.0)).clamp(1, BINS)  # the bin that holds this rank
            inside = (ranks - below[place - 1]) / (below[place] - below[place - 1]).clamp(min=1e-12)
            self.curve[channel] = (edges[place - 1] + inside.clamp(0.0, 1.0) / BINS).float()
            self.curve[channel][place == 1] = 0.0  # the darkest bin is black: most pictures have a background
            self.curve[channel][place == BINS] = 1.0

    def shown(self, drawn: Tensor) -> Tensor:
        """Records (n, C, …) in [0, 1] with real contrast."""
        place = ((drawn + 0.5) / 2.0 * (_LEVELS - 1)).clamp(0.0, _LEVELS - 1.001)
        low = place.long()
        part = place - low
        out = torch.empty_like(drawn)
        for channel in range(self.channels):
            curve = self.curve[channel]
            here = low[:, channel]
            out[:, channel] = curve[here] * (1.0 - part[:, channel]) + curve[here + 1] * part[:, channel]
        return out
