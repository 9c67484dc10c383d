"""A conditional GAN whose discriminator learns by DP-SGD: the records' gradients are clipped one by one and noised."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.core.randomness import derive_seed
from sfumato.mechanisms.base import Progress
from sfumato.mechanisms.synth.class_counts import Classes
from sfumato.mechanisms.synth.gan_networks import Generator, SmallDiscriminator
from sfumato.mechanisms.synth.methods.method import Method, Task
from sfumato.mechanisms.synth.per_record_gradients import record_gradients
from sfumato.nets.training_loop import take_step
from sfumato.privacy.ledger import Ask, Plan
from sfumato.privacy.query_counter import Counter, Records, clipped_sum

_ASK = "discriminator"


class DPSGDGan(Method):
    """Every discriminator step asks once for Σ clip(∂ log(1 + e^−D(xᵢ, yᵢ))/∂w) over a Poisson sample.

    The generator's pictures are nobody's records: their gradients are clipped alike, so that both sides weigh the same,
    but carry no noise. The generator sees the discriminator only, several steps of it between two of its own, and what
    is kept is the running average of its weights.
    """

    name = "dpsgd-gan"
    resumable = False

    batch = 256
    """Expected size of a sample, at most: the rate is for the number of records rounded up to a power of two."""
    bound = 1.0
    steps = 1500
    per_generator = 3
    """Discriminator steps to one of the generator: noisy gradients need averaging before they are followed."""
    rates = (7e-4, 1e-3)
    """Of Adam, discriminator and generator."""
    average = 0.98
    variety = 0.05
    """Weight of 1/(how far two pictures of a class are apart, by how far their z are): Mao et al. 2019. It costs
    nothing, and without it a class becomes one picture."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(task.seed, self.name))
            self.generator = Generator(task.schema.shape, task.classes)
            self.discriminator = self._discriminator()
        self.classes = Classes(task.classes)

    def _discriminator(self) -> nn.Module:
        """(x, y) → logit of "real", for each record by itself: a layer that mixes records would void the proof."""
        return SmallDiscriminator(self.task.schema.shape, self.task.classes)

    def plan(self, records: int) -> tuple[Ask, ...]:
        rate = min(1.0, self.batch / max(records, 1))
        steps = Ask("discriminator", _ASK, 1.0, count=self.task.steps or self.steps, rate=rate)
        return (*self.classes.beside(steps), steps)

    def least(self, plan: Plan) -> float:
        return self.classes.least(plan)

    def learn(self, counter: Counter, progress: Progress) -> None:
        self.classes.learn(counter)
        steps = self.task.steps or self.steps
        chance = torch.Generator().manual_seed(derive_seed(self.task.seed, self.name, "z"))
        moving = copy.deepcopy(self.generator).train()
        weights = [*self.discriminator.parameters()]
        critic = torch.optim.Adam(weights, lr=self.rates[0], betas=(0.5, 0.999))
        artist = torch.optim.Adam(moving.parameters(), lr=self.rates[1], betas=(0.5, 0.999))
        for step in range(steps):
            if step % self.per_generator == 0:
                x, y = self._pictures(moving, self.per_generator * self.batch, chance)
            part = slice(step % self.per_generator * self.batch, (step % self.per_generator + 1) * self.batch)
            real = counter.sampled(_ASK, self._real, self.bound)  # (m,)
            fake = clipped_sum(self._fake(x[part], y[part]), self.bound)  # (m,)
            _follow(critic, weights, (real + fake) / self.batch)
            if (step + 1) % self.per_generator == 0 or step + 1 == steps:
                loss = self._generator_step(moving, artist, chance)
                self._average(moving, first=step < self.per_generator)
                progress(step + 1, steps, {"generator": loss})
        self.generator.eval()

    def _real(self, records: Records) -> Tensor:
        return record_gradients(self.discriminator, lambda: F.softplus(-self.discriminator(records.x, records.y)))

    def _fake(self, x: Tensor, y: Tensor) -> Tensor:
        return record_gradients(self.discriminator, lambda: F.softplus(self.discriminator(x, y)))

    def _pictures(self, moving: Generator, rows: int, chance: torch.Generator) -> tuple[Tensor, Tensor]:
        y = self.classes.draw(rows, chance)
        with torch.no_grad():
            return moving(torch.randn(rows, moving.latent, generator=chance), y), y

    def _generator_step(self, moving: Generator, artist: torch.optim.Adam, chance: torch.Generator) -> float:
        half = self.batch // 2
        y = self.classes.draw(half, chance).repeat(2)
        z = torch.randn(2 * half, moving.latent, generator=chance)
        x = moving(z, y)
        loss = F.softplus(-self.discriminator(x, y)).mean()
        apart = (x[:half] - x[half:]).abs().mean() / (z[:half] - z[half:]).abs().mean()
        take_step(artist, loss + self.variety / (apart + 1e-3))
        return float(loss.detach())

    def _average(self, moving: Generator, *, first: bool) -> None:
        keep = 0.0 if first else self.average
        with torch.no_grad():
            for ours, theirs in zip(self.generator.state_dict().values(), moving.state_dict().values(), strict=True):
                if ours.is_floating_point():
                    ours.lerp_(theirs, 1.0 - keep)

    def sample(self, rows: int, generator: torch.Generator, only: int | None = None) -> tuple[Tensor, Tensor]:
        return draw(self.generator, self.classes, rows, generator, only)

    def modules(self) -> dict[str, nn.Module]:
        return {"generator": self.generator, "classes": self.classes}


def draw(
    network: Generator, classes: Classes, rows: int, generator: torch.Generator, only: int | None
) -> tuple[Tensor, Tensor]:
    """So many pictures (rows, C, H, W) with their classes (rows,)."""
    network.eval()
    y = classes.draw(rows, generator, only)
    z = torch.randn(rows, network.latent, generator=generator)
    with torch.no_grad():
        parts = [network(*pair) for pair in zip(torch.split(z, 1024), torch.split(y, 1024), strict=True)]
    return torch.cat(parts), y


def _follow(optimiser: torch.optim.Optimizer, weights: list[nn.Parameter], gradient: Tensor) -> None:
    """One step along a flat gradient (m,)."""
    sizes = [weight.numel() for weight in weights]
    for weight, part in zip(weights, torch.split(gradient, sizes), strict=True):
        weight.grad = part.view_as(weight).clone()
    optimiser.step()
