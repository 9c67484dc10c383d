"""The training of ``phase``: the task, the critic of Eq. 8 and, if asked for, ``ran``'s decoder."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.mechanisms.utility_task import UtilityTask
from sfumato.nets.training_loop import CONSTANT, take_step

CLIP = 0.01
"""The W-GAN's constraint: after every step the critic's weights are clipped to ±0.01 (Arjovsky et al. 2017)."""


@dataclass(frozen=True)
class Networks:
    """g (encryption module with the added generator), Φ (cloud), the decryption module, and the two adversaries."""

    encoder: nn.Module
    cloud: nn.Module
    decoder: nn.Module
    critic: nn.Module | None
    inverter: nn.Module | None


@dataclass(frozen=True)
class CriticSchedule:
    """How D of Eq. 8 is trained, as a W-GAN's is (Arjovsky et al. 2017, Algorithm 1): steps for each one of the
    network, the constant rate of RMSProp, and ``k``, one real feature and k − 1 turned ones."""

    steps: int
    rate: float
    k: int


class PhaseGame:
    """One batch: Eq. 9 for the network, Eq. 8 for the critic, Eq. 3 and 4 of ``ran`` for the inverter.

    The records of a batch stand in groups of d, and each is in turn the record and a decoy: Φ turns with any
    orthogonal matrix, permutations included, so that one pass through Φ answers for all d of them. For the same
    reason nothing has to be rotated in training: RᵀΦ(Rx) = Φ(x).
    """

    def __init__(
        self,
        networks: Networks,
        task: UtilityTask,
        schedule: CriticSchedule,
        *,
        d: int,
        critic: float,
        lam: float,
        rate: float,
    ) -> None:
        self.n, self.task, self.schedule, self.d = networks, task, schedule, d
        self.weight, self.lam = critic, lam
        modules = (networks.encoder, networks.cloud, networks.decoder)
        ours = [parameter for module in modules for parameter in module.parameters()]
        self.optimisers: dict[str, torch.optim.Optimizer] = {"task": torch.optim.Adam(ours, rate)}
        if networks.critic is not None:
            theirs = {"params": list(networks.critic.parameters()), CONSTANT: True}
            self.optimisers["critic"] = torch.optim.RMSprop([theirs], schedule.rate)
        if networks.inverter is not None:
            self.optimisers["inverter"] = torch.optim.Adam(networks.inverter.parameters(), rate)
            self.optimisers["hide"] = torch.optim.Adam(ours, rate)

    def play(self, x: Tensor, y: Tensor) -> dict[str, float]:
        whole = len(x) // self.d * self.d  # the few records that fill no group have their turn in another epoch
        x, y = x[:whole], y[:whole]
        a = self.n.encoder(x)  # (B, K, …)
        losses = {}
        if self.n.critic is not None:
            losses["L"] = self._criticise(a.detach())
        task = self._task_loss(a, y)
        fooled = self.weight * self._gap(a) if self.n.critic is not None else 0.0
        take_step(self.optimisers["task"], task + fooled)  # Eq. 9
        losses["task"] = task.item()
        if self.n.inverter is not None:
            losses |= self._hide(x, y)
        return losses

    def _task_loss(self, a: Tensor, y: Tensor) -> Tensor:
        """The task loss of every record, from a tuple that holds it and d − 1 others."""
        grouped = a.view(-1, self.d, *a.shape[1:])  # (B/d, d, K, …)
        answers = self.n.cloud(grouped).flatten(0, 1)  # (B, …)
        return self.task.loss(self.n.decoder(answers), y)

    def _gap(self, a: Tensor) -> Tensor:
        """Eq. 8 for a batch: D(a) − E[D(a')], a' one row of the turned tuple, over k − 1 rotations drawn anew."""
        assert self.n.critic is not None
        grouped = a.view(-1, self.d, *a.shape[1:])  # (B/d, d, K, …)
        fakes = []
        for _ in range(self.schedule.k - 1):
            direction = F.normalize(torch.randn(len(grouped), self.d), dim=1)  # a row of a Haar rotation
            fakes.append(torch.einsum("gd,gd...->g...", direction, grouped))
        return self.n.critic(a).mean() - self.n.critic(torch.cat(fakes)).mean()  # type: ignore[no-any-return]

    def _criticise(self, a: Tensor) -> float:
        assert self.n.critic is not None
        for _ in range(self.schedule.steps):
            gap = self._gap(a)
            take_step(self.optimisers["critic"], -gap)
            with torch.no_grad():
                for weight in self.n.critic.parameters():
                    weight.clamp_(-CLIP, CLIP)
        return gap.item()

    def _hide(self, x: Tensor, y: Tensor) -> dict[str, float]:
        """``ran``'s generative and adversarial stage on a: λ·task − (1 − λ)·error."""
        assert self.n.inverter is not None
        with torch.no_grad():
            a = self.n.encoder(x)
        read = F.mse_loss(self.n.inverter(a), x)
        take_step(self.optimisers["inverter"], read)
        a = self.n.encoder(x)
        error = F.mse_loss(self.n.inverter(a), x)
        take_step(self.optimisers["hide"], self.lam * self._task_loss(a, y) - (1 - self.lam) * error)
        return {"error": read.item()}


def critic_network(features: tuple[int, ...]) -> nn.Module:
    """D of §4.1: a convolution and a fully-connected layer (two of these for vectors) → one number."""
    if len(features) == 1:
        return nn.Sequential(nn.Linear(features[0], 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
    conv = nn.Conv1d if len(features) == 2 else nn.Conv2d
    sides = [(side + 1) // 2 for side in features[1:]]
    return nn.Sequential(
        conv(features[0], 16, 3, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(16 * torch.Size(sides).numel(), 1),
    )
