"""Strategy 1 of the rotated features' paper (§3.2): a critic D' finds the direction of the record in a message."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.attacks.base import Attack, Guess, Measured, ReconstructionAttack, measure_mean
from sfumato.attacks.decoder_training import Memo
from sfumato.attacks.rotations.feature_decoder import PlainDecoder
from sfumato.attacks.rotations.message_algebra import along, device_missing, encoder_missing, most_records, own_device
from sfumato.core import metrics
from sfumato.core.dataset import FloatArray
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release
from sfumato.nets.training_loop import as_tensor, forward_in_batches, minibatches, take_step

_ANGLES, _DIRECTIONS = 64, 256
"""Directions tried first: evenly on the circle, at random on a sphere."""
_NEARER = (0.3, 0.1, 0.03)
"""Then around the best one, closer every time."""
_TRIES = 12
_AT_ONCE = 30_000_000
"""Numbers of turned features held at once."""


class Critic(nn.Module):
    """feature → one number, higher for the feature of a record: a convolution and a linear layer, as in §4.1.

    The convolution comes first and has no bias, so that a message's rows pass it once for all directions. Beside it
    stands what is known of directions themselves: nothing where keys are uniform, all where they are the identity.
    """

    scale: Tensor

    def __init__(self, row: tuple[int, ...], d: int, width: int, scale: Tensor) -> None:
        super().__init__()
        self.register_buffer("scale", scale)
        if len(row) == 1:
            self.mix: nn.Module = nn.Linear(row[0], 4 * width, bias=False)
            self.norm: nn.Module = nn.BatchNorm1d(4 * width)
        else:
            conv, norm = (nn.Conv1d, nn.BatchNorm1d) if len(row) == 2 else (nn.Conv2d, nn.BatchNorm2d)
            self.mix = conv(row[0], width, 3, stride=2, padding=1, bias=False)
            self.norm = norm(width)
        size = self.mix(torch.zeros(1, *row)).numel()
        self.head = nn.Sequential(self.norm, nn.ReLU(), nn.Flatten(), nn.Linear(size, 1), nn.Flatten(0))
        self.prior = nn.Sequential(nn.Linear(d, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(-2))

    def forward(self, features: Tensor) -> Tensor:  # (B, …) → (B,)
        return self.head(self.mix(features / self.scale))  # type: ignore[no-any-return]

    def judge(self, messages: Tensor, directions: Tensor) -> Tensor:
        """D'(uᵀX) for k directions of each message, (B, d, …) and (B, k, d) → (B, k)."""
        mixed = self.mix(messages.flatten(0, 1) / self.scale).unflatten(0, messages.shape[:2])
        turned = (directions @ mixed.flatten(2)).view(-1, *mixed.shape[2:])
        return self.head(turned).view(directions.shape[:2]) + self.prior(directions)  # type: ignore[no-any-return]


class InverseCritic(ReconstructionAttack):
    """Turns every message so that D' likes it best, and decodes what then stands in the first row.

    D' is trained with the logistic loss (the paper's is a W-GAN's) to tell the attacker's own features from rows of
    wrongly turned messages and from their decoys. The decoder knows plain features only.
    """

    name = "inverse-critic"
    title = "critic picks the rotation, then decode"
    how = "the direction that looks most like a feature"

    decoder: PlainDecoder
    epochs: int = 6
    width: int = 16
    fewest_steps: int = 500
    records: int = 8000
    _trained: Memo[Critic] = field(default_factory=Memo, init=False)
    _found: Memo[FloatArray] = field(default_factory=Memo, init=False)

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return super().obstacle(knowledge) or device_missing(knowledge) or encoder_missing(knowledge)

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        directions = as_tensor(self.directions(release, knowledge))
        messages = as_tensor(release.payload)
        return self.decoder.decode(along(messages, directions), knowledge)

    def directions(self, release: Release, knowledge: Knowledge) -> FloatArray:
        """The direction (N, d) in which each message looks most like a record's feature."""
        return self._found.get((release.payload, knowledge.own_device), lambda: self._search(release, knowledge, None))

    def rows(self, release: Release, knowledge: Knowledge) -> FloatArray:
        """The directions (N, d, d) of all rows of each message, the likeliest first.

        Rows stand along the columns of an orthogonal key: each further one is searched for at right angles to those
        that are found.
        """
        found = self.directions(release, knowledge)[:, None]
        while found.shape[1] < found.shape[2]:
            found = np.concatenate([found, self._search(release, knowledge, found)[:, None]], axis=1)
        return found

    def judge(self, features: Tensor, knowledge: Knowledge) -> FloatArray:
        """D' of each feature."""
        return forward_in_batches(self.train(knowledge), features).numpy()

    def train(self, knowledge: Knowledge) -> Critic:
        """D', also for the attacks that build on it."""
        return self._trained.get((knowledge.own_device, knowledge.auxiliary), lambda: self._train(knowledge))

    def _train(self, knowledge: Knowledge) -> Critic:
        seed = derive_seed(knowledge.seed, self.name)
        order = np.random.default_rng(seed).permutation(len(knowledge.auxiliary))
        sample = knowledge.auxiliary.take(order[: most_records(knowledge, self.records)])
        opened = own_device(knowledge, sample)
        messages, keys = as_tensor(opened.payload), as_tensor(opened.key)
        torch.manual_seed(seed)
        scale = along(messages[:512], keys[:512, :, 0]).std().clamp_min(1e-12)
        critic = Critic(tuple(messages.shape[2:]), messages.shape[1], self.width, scale)
        optimiser = torch.optim.Adam(critic.parameters())
        in_epoch = len(messages) // 128 + 1
        epochs = max(self.epochs, math.ceil(self.fewest_steps / in_epoch))
        schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, epochs * in_epoch)
        for epoch in range(epochs):
            for rows in minibatches(len(messages), 128, derive_seed(seed, epoch)):
                take_step(optimiser, _logistic(critic, messages[rows], keys[rows]))
                schedule.step()
        return critic.eval()

    def _search(self, release: Release, knowledge: Knowledge, found: FloatArray | None) -> FloatArray:
        critic = self.train(knowledge)
        generator = torch.Generator().manual_seed(derive_seed(knowledge.seed, self.name, "directions"))
        messages = as_tensor(release.payload)
        d = messages.shape[1]
        first = _directions(d, generator)
        if found is not None and found.shape[1] == d - 1:
            first = torch.cat([torch.eye(d), -torch.eye(d)])  # one line is left, in two directions
        batch = max(1, _AT_ONCE // (len(first) * critic.mix(messages[:1, 0]).numel()))
        known = torch.zeros(len(messages), 0, d) if found is None else as_tensor(found)
        parts = zip(torch.split(messages, batch), torch.split(known, batch), strict=True)
        return torch.cat([_search(critic, part, first, off, generator) for part, off in parts]).numpy()


def _logistic(critic: Critic, messages: Tensor, keys: Tensor) -> Tensor:
    d = keys.shape[1]
    decoy = torch.randint(1, d, (len(keys),))
    wrong = F.normalize(torch.randn(len(keys), d), dim=1)
    directions = [keys[:, :, 0], wrong, keys[torch.arange(len(keys)), :, decoy]]  # one true, two false
    scores = critic(torch.cat([along(messages, each) for each in directions])) + critic.prior(torch.cat(directions))
    likes, dislikes = scores[: len(keys)], scores[len(keys) :]
    return F.softplus(-likes).mean() + F.softplus(dislikes).mean()


def _directions(d: int, generator: torch.Generator) -> Tensor:
    if d == 2:
        angles = torch.arange(_ANGLES) * (2.0 * math.pi / _ANGLES)
        return torch.stack([angles.cos(), angles.sin()], 1)
    return F.normalize(torch.randn(_DIRECTIONS, d, generator=generator), dim=1)


@torch.inference_mode()
def _search(critic: Critic, messages: Tensor, first: Tensor, off: Tensor, generator: torch.Generator) -> Tensor:
    """The direction that D' likes best, at right angles to ``off`` (B, j, d)."""
    tried = _across(first.expand(len(messages), *first.shape), off)
    for radius in (*_NEARER, None):
        scores = critic.judge(messages, tried)
        best = tried[torch.arange(len(messages)), scores.argmax(1)]  # (B, d)
        if radius is not None:
            steps = radius * torch.randn(len(best), _TRIES, best.shape[1], generator=generator)
            tried = torch.cat([best[:, None], _across(best[:, None] + steps, off)], 1)
    return best


def _across(directions: Tensor, off: Tensor) -> Tensor:
    """Unit directions (B, k, d) without their parts along ``off`` (B, j, d)."""
    return F.normalize(directions - (directions @ off.mT) @ off, dim=2)


class EstimateAngle(Attack):
    """The key itself: the direction of the record's row, by the critic (the paper's second measure, §4.4).

    Without a release no direction is better than another: a guess of zeros, scored as a uniform one is on average.
    The folded angle takes u and −u for one; the paper's figures of 0.79 = π/4 look like it.
    """

    name = "key-angle"
    threat = "key"
    undefended: ClassVar[Mapping[str, float]] = {"angle": 0.0, "angle-folded": 0.0}
    """A key that is no secret is known."""

    inverse: InverseCritic

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return self.inverse.obstacle(knowledge)

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        return self.inverse.directions(release, knowledge)

    def trivial(self, knowledge: Knowledge, n: int) -> FloatArray:
        assert knowledge.own_device is not None  # obstacle() has seen to it
        d = own_device(knowledge, knowledge.auxiliary.take(slice(0, 64))).key.shape[1]
        return np.zeros((n, d), dtype=np.float32)

    def measure(self, guess: Guess, truth: Truth) -> list[Measured]:
        victim, record = truth.open(), truth.secret("key")[:, :, 0]
        turned = metrics.angle(record, guess)
        folded = metrics.folded_angle(record, guess)
        return [
            measure_mean("angle", "higher", turned, victim, (0.0, math.pi), primary=True),
            measure_mean("angle-folded", "higher", folded, victim, (0.0, math.pi / 2)),
        ]
