"""What teachers look at: fixed wavelets first, then a network that learnt to see from drawn pictures."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.core.randomness import derive_seed
from sfumato.mechanisms.synth.scattering import Scattering
from sfumato.nets.training_loop import channels_last, minibatches, take_step

WIDTH = 16
_SMALLEST = 8
SEEN = 12
"""The shortest side that an ``Eye``'s convolutions leave anything of."""
_BATCH = 256
_RATE = 2e-3
_EPOCHS = 4


def pictured(shape: tuple[int, ...], side: int = _SMALLEST) -> bool:
    """Whether records are planes of ``side`` × ``side`` or more."""
    return len(shape) == 3 and min(shape[1:]) >= side


class Wavelets(nn.Module):
    """Scattering of a picture's brightness and its colours coarsely, (n, C, H, W) → (n, size); others as they are."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.scattering = Scattering() if pictured(shape) else None
        self.size = int(self(torch.zeros(1, *shape)).shape[1])

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        if self.scattering is None:
            return x.flatten(1)
        parts = [self.scattering(x.mean(dim=1, keepdim=True)).flatten(1)]
        if x.shape[1] > 1:
            parts.append(F.avg_pool2d(x, 4).flatten(1))
        return torch.cat(parts, dim=1)


class Eye(nn.Module):
    """Two convolutions, then a classifier that is thrown away: what is kept are the maps, (n, C, H, W) → (n, size).

    A student of the drawn pictures sees much as this network does, since both learnt from the same pictures. So a
    teacher that reads these maps can be followed by a student, further than one that reads wavelets.
    """

    def __init__(self, shape: tuple[int, ...], classes: int, seed: int) -> None:
        super().__init__()
        self.seed = seed
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "eye"))
            self.maps = nn.Sequential(
                nn.Conv2d(shape[0], WIDTH, 5, padding=2),
                nn.BatchNorm2d(WIDTH),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Conv2d(WIDTH, 2 * WIDTH, 5),
                nn.BatchNorm2d(2 * WIDTH),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Flatten(),
            )
            self.size = int(self.maps.eval()(torch.zeros(1, *shape)).shape[1])
            self.reads = nn.Sequential(nn.Linear(self.size, 128), nn.ReLU(), nn.Linear(128, classes))

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.maps(x)
        return found

    def learn(self, drawn: Tensor, wanted: Tensor) -> None:
        """From drawn pictures and class probabilities for each: no private record is here."""
        channels_last(self).train()
        optimiser = torch.optim.Adam(self.parameters(), _RATE)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimiser, _RATE, total_steps=_EPOCHS * math.ceil(len(drawn) / _BATCH)
        )
        for epoch in range(_EPOCHS):
            for rows in minibatches(len(drawn), _BATCH, derive_seed(self.seed, "eye", epoch)):
                scores = self.reads(self.maps(drawn[rows]))
                take_step(optimiser, F.cross_entropy(scores, wanted[rows]))
                schedule.step()
        self.eval()
