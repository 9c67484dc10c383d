"""A noisy mean embedding of each class, and a generator whose pictures have the same."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from sfumato.core.randomness import derive_seed
from sfumato.mechanisms.base import Progress
from sfumato.mechanisms.synth.class_counts import Classes
from sfumato.mechanisms.synth.gan_networks import Generator
from sfumato.mechanisms.synth.methods.dpsgd_gan import draw
from sfumato.mechanisms.synth.methods.method import Method, Task
from sfumato.mechanisms.synth.random_convolutions import FixedFeatures
from sfumato.nets.training_loop import take_step
from sfumato.privacy.ledger import Ask, Plan
from sfumato.privacy.query_counter import Counter, Records

_ASK = "embedding"
_COUNT = 0.1
"""The part of a row that counts its record: (c, √(1 − c²)·φ(x)) has norm ≤ 1."""


class Embedding(Method):
    """One question: Σ (c, φ(xᵢ)) over the records of each class, φ fixed features of norm ≤ 1.

    Their quotient is the mean embedding μ_k. The generator is then trained without a record in sight to
    minimise Σ_k ‖W(E φ(G(z, k)) − μ_k)‖². Both means of a product of two are taken over pictures of their own,
    ⟨m₁ − μ, m₂ − μ⟩, which is unbiased; the plain square of a batch's mean would punish variety.
    W² = 1/(between-class variance of a feature + the mean of all), from the noisy means.
    """

    name = "embedding"

    steps = 1500
    pictures = 320
    """Of a step, over all classes in it."""
    fewest = 32
    """Pictures of a class in a step; with many classes a step takes some of them."""
    rate = 2e-3

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.features = FixedFeatures(task.schema.shape, derive_seed(task.seed, self.name, "features"))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(task.seed, self.name))
            self.generator = Generator(task.schema.shape, task.classes, width=32)
        self.classes = Classes(task.classes)

    def plan(self, records: int) -> tuple[Ask, ...]:
        return (Ask("embedding", _ASK, 1.0),)

    def least(self, plan: Plan) -> float:
        return 3.0 * plan[0].noise / _COUNT

    def learn(self, counter: Counter, progress: Progress) -> None:
        total = counter.sums(_ASK, self._rows, 1.0, groups=lambda records: records.y, size=self.task.classes)
        counts, sums = torch.as_tensor(total[:, :1]) / _COUNT, torch.as_tensor(total[:, 1:])
        self.classes.set(counts.squeeze(1))
        self._match((sums / counts.clamp(min=1.0) / _rest()).float(), progress)

    def _rows(self, records: Records) -> Tensor:
        with torch.no_grad():
            features = torch.cat([self.features(part) for part in torch.split(records.x, 512)])  # (n, size)
        return torch.cat([torch.full((len(features), 1), _COUNT), _rest() * features], dim=1)

    def _match(self, target: Tensor, progress: Progress) -> None:
        """Train the generator towards the mean embeddings (k, size)."""
        weight = _weights(target)
        self.generator.start_at(self.features.brightness(target))
        chance = torch.Generator().manual_seed(derive_seed(self.task.seed, self.name, "z"))
        optimiser = torch.optim.Adam(self.generator.parameters(), lr=self.rate, betas=(0.5, 0.99))
        steps, some = self.task.steps or self.steps, min(self.task.classes, self.pictures // self.fewest)
        each = self.pictures // some // 2 * 2
        self.generator.train()
        for step in range(steps):
            optimiser.param_groups[0]["lr"] = self.rate * (0.51 + 0.49 * math.cos(math.pi * step / steps))
            chosen = torch.randperm(self.task.classes, generator=chance)[:some]  # (some,)
            z = torch.randn(some * each, self.generator.latent, generator=chance)
            features = self.features(self.generator(z, chosen.repeat_interleave(each)))
            gaps = features.view(some, 2, each // 2, -1).mean(dim=2) - target[chosen].unsqueeze(1)  # (some, 2, size)
            loss = (gaps[:, 0] * gaps[:, 1] * weight).sum(dim=1).mean()
            take_step(optimiser, 1000.0 * loss)  # far above the eps of Adam
            if (step + 1) % 10 == 0 or step + 1 == steps:
                progress(step + 1, steps, {"distance": float(loss.detach())})
        self.generator.eval()

    def sample(self, rows: int, generator: torch.Generator, only: int | None = None) -> tuple[Tensor, Tensor]:
        return draw(self.generator, self.classes, rows, generator, only)

    def modules(self) -> dict[str, nn.Module]:
        return {"generator": self.generator, "classes": self.classes}


def _rest() -> float:
    return math.sqrt(1.0 - _COUNT**2)


def _weights(target: Tensor) -> Tensor:
    """W² of each feature (size,), of mean 1; all 1 for a single class."""
    if len(target) == 1:
        return torch.ones(target.shape[1])
    between = target.var(dim=0)
    weight = 1.0 / (between + between.mean())
    return weight / weight.mean()
