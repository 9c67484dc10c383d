"""Whether features of records can be told from turned ones: a fresh critic, and how far features spread.

It answers for Eq. 8 of the rotated features' paper, whose critic is trained beside the network: a network that fools
that one may not fool another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional as F

from sfumato.attacks.rotations.direction_critic import Critic
from sfumato.attacks.rotations.message_algebra import along
from sfumato.auditing.effort import Effort
from sfumato.core import metrics
from sfumato.core.dataset import Dataset, FloatArray, Splits
from sfumato.core.intervals import Interval, bootstrap
from sfumato.core.knowledge import Opened
from sfumato.core.randomness import derive_seed
from sfumato.mechanisms.capabilities import Rotates
from sfumato.nets.training_loop import as_tensor, forward_in_batches, minibatches, take_step

_BATCH = 128
_MOST = 2_000
"""So many victims are enough for an area and a spread; the attacker learns from four times as many."""


@dataclass(frozen=True)
class TurnedFeatures:
    """What a fresh critic says of the victims' features (N,) and of the same messages turned wrongly (N,), and the
    features (N, F)."""

    real: metrics.Values
    turned: metrics.Values
    features: FloatArray

    @property
    def n(self) -> int:
        return len(self.real)

    def area(self, weights: metrics.Values) -> float:
        """The area under the ROC curve, of records with these weights; 0.5 is guessing."""
        truth = np.repeat([1, 0], self.n)
        scores = np.concatenate([self.real, self.turned])
        statistic = metrics.auroc_statistic(truth, np.stack([-scores, scores], axis=1).astype(np.float32))
        return statistic(np.tile(weights, 2))

    def spread(self, weights: metrics.Values) -> float:
        """The deviation of a number of the feature over records, averaged over the feature's numbers."""
        share = (weights / weights.sum()).astype(np.float32)
        variance = share @ self.features**2 - (share @ self.features) ** 2
        return float(np.sqrt(np.maximum(variance, 0.0)).mean())


def turned_features(mechanism: Rotates, splits: Splits, effort: Effort, seed: int) -> TurnedFeatures:
    """A critic trained on the attacker's records and keys, then asked about the victims'."""
    own, victims = (_some(part, most) for part, most in ((splits.attacker, 4 * _MOST), (splits.victim, _MOST)))
    learnt = mechanism.opened(own, seed=derive_seed(seed, "turned features", "own"))
    critic = _fresh_critic(learnt, effort, derive_seed(seed, "turned features"))
    sent = mechanism.opened(victims, seed=derive_seed(seed, "turned features", "victims"))
    rng = torch.Generator().manual_seed(derive_seed(seed, "turned features", "directions"))
    real = along(as_tensor(sent.payload), as_tensor(sent.key)[:, :, 0])
    turned = along(as_tensor(sent.payload), _directions(sent, rng))
    likes, dislikes = (forward_in_batches(critic, part).double().numpy() for part in (real, turned))
    return TurnedFeatures(likes, dislikes, real.flatten(1).numpy())


def compared(one: TurnedFeatures, other: TurnedFeatures, what: str, *, ratio: bool = False) -> tuple[float, Interval]:
    """``area`` or ``spread`` of one mechanism less (or over) that of another, over the same victims."""

    def statistic(weights: metrics.Values) -> float:
        a, b = getattr(one, what)(weights), getattr(other, what)(weights)
        return float(a / max(b, 1e-12) if ratio else a - b)

    return statistic(np.ones(one.n)), bootstrap(statistic, one.n)


def _some(data: Dataset, most: int) -> Dataset:
    return data.take(slice(0, most))


def _directions(sent: Opened, rng: torch.Generator) -> torch.Tensor:
    """Drawn uniformly: a row of the message that is turned by any key."""
    return F.normalize(torch.randn(sent.key.shape[:2], generator=rng), dim=1)


def _fresh_critic(learnt: Opened, effort: Effort, seed: int) -> Critic:
    """D' of §3.2, by the logistic loss, on rows turned back rightly and wrongly, drawn anew in every pass."""
    messages, right = as_tensor(learnt.payload), as_tensor(learnt.key)[:, :, 0]
    torch.manual_seed(seed)
    rng = torch.Generator().manual_seed(seed)
    scale = along(messages[:512], right[:512]).std().clamp_min(1e-12)
    critic = Critic(tuple(messages.shape[2:]), messages.shape[1], effort.attack_width // 2, scale)
    optimiser = torch.optim.Adam([*critic.mix.parameters(), *critic.head.parameters()])
    in_pass = len(messages) // _BATCH + 1
    passes = max(effort.attack_epochs, math.ceil(effort.attack_steps / in_pass))
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, passes * in_pass)
    for number in range(passes):
        wrong = _directions(learnt, rng)
        for rows in minibatches(len(messages), _BATCH, derive_seed(seed, number)):
            scores = critic(torch.cat([along(messages[rows], right[rows]), along(messages[rows], wrong[rows])]))
            likes, dislikes = scores[: len(rows)], scores[len(rows) :]
            take_step(optimiser, F.softplus(-likes).mean() + F.softplus(dislikes).mean())
            schedule.step()
    return critic.eval()
