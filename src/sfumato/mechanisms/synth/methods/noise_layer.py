"""The paper's GAN with a noise layer, as published, and the same idea with a front that never sees a private record."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.core.randomness import Secure, derive_seed
from sfumato.mechanisms.base import Progress
from sfumato.mechanisms.synth import gan_networks as gan
from sfumato.mechanisms.synth.class_counts import Classes
from sfumato.mechanisms.synth.methods.dpsgd_gan import DPSGDGan, draw
from sfumato.mechanisms.synth.methods.method import Method, Task, public_number
from sfumato.mechanisms.synth.random_convolutions import FixedFront
from sfumato.nets.training_loop import take_step
from sfumato.privacy.ledger import Ask, Plan
from sfumato.privacy.query_counter import Counter

_LAYER, _LABELS = "noise layer", "labels"


class NoiseLayer(Method):
    """The paper: Gaussian noise on the clipped output of the discriminator's third convolution, Adam, batches of 32.

    One step is claimed as one Gaussian mechanism on a Poisson sample (the moments accountant of the paper; the samples
    are drawn as it assumes). Labels: ``data`` puts the label into the record, as a channel before the noise, and leaves
    true and false as the only targets (the paper's first way); ``noisy`` takes each label once through randomised
    response and adds its ε (Theorem 3); ``public`` takes them as they are.
    """

    name = "noise-layer"
    labels = ("data", "noisy", "public", "none")
    resumable = False
    doubt = (
        "Not proven: Theorem 2 takes a weight update for a function of the noisy output alone, but the gradient of "
        "every layer before the noise is Σ patches(xᵢ)·δᵢ and depends on the raw records xᵢ. The ε is the claim of the "
        "paper and protects nobody: `sfumato reproduce synth-flaw` finds a record at any noise."
    )

    batch = 32
    steps = 4000
    rate = 2e-4
    label_share = 0.5
    """Of ε, for randomised response."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.noise = gan.GaussianNoiseLayer(_secure_normal)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(task.seed, self.name))
            self.generator = gan.Generator(task.schema.shape, task.classes)
            self.discriminator = gan.NoisyDiscriminator(task.schema.shape, task.classes, self.noise)
        self.classes = Classes(task.classes)

    def plan(self, records: int) -> tuple[Ask, ...]:
        layer = Ask("discriminator", _LAYER, 1.0, count=self.task.steps or self.steps, rate=self._rate(records))
        if self.task.classes > 1 and self.task.labels == "noisy":
            share = self.label_share / (1.0 - self.label_share)
            return (Ask("labels", _LABELS, share, kind="response", size=self.task.classes), layer)
        return (*(self.classes.beside(layer) if self.task.labels == "data" else ()), layer)

    def _rate(self, records: int) -> float:
        return min(1.0, self.batch / max(records, 1))

    def least(self, plan: Plan) -> float:
        return self.classes.least(plan)

    def learn(self, counter: Counter, progress: Progress) -> None:
        labels = None
        if self.task.labels == "data":
            self.classes.learn(counter)
        elif self.task.labels == "noisy" and self.task.classes > 1:
            labels = counter.responses(_LABELS)  # (n,)
        records = counter.bypass(self.doubt)
        y = records.y if labels is None else labels
        if self.task.labels in ("noisy", "public"):
            self.classes.set(torch.bincount(y, minlength=self.task.classes).double())
        chance = torch.Generator().manual_seed(derive_seed(self.task.seed, self.name, "z"))
        both = (self.discriminator, self.generator)
        critic, artist = (torch.optim.Adam(net.parameters(), lr=self.rate, betas=(0.5, 0.999)) for net in both)
        steps, rate, secret = self.task.steps or self.steps, self._rate(public_number(len(records))), Secure()
        self.generator.train()
        for step in range(steps):
            self.noise.sigma = counter.claim(_LAYER)
            chosen = torch.as_tensor(secret.uniform((len(records),)) < rate).nonzero().squeeze(1)
            fake, drawn = self._pictures(chance)
            if len(chosen) > 1:  # batch norm needs two
                real = F.softplus(-self.discriminator(records.x[chosen], y[chosen])).mean()
                take_step(critic, real + F.softplus(self.discriminator(fake.detach(), drawn)).mean())
            loss = F.softplus(-self.discriminator(fake, drawn)).mean()
            take_step(artist, loss)
            if (step + 1) % 10 == 0 or step + 1 == steps:
                progress(step + 1, steps, {"generator": float(loss.detach())})
        self.generator.eval()

    def _pictures(self, chance: torch.Generator) -> tuple[Tensor, Tensor]:
        y = self.classes.draw(self.batch, chance)
        x: Tensor = self.generator(torch.randn(self.batch, self.generator.latent, generator=chance), y)
        return x, y

    def sample(self, rows: int, generator: torch.Generator, only: int | None = None) -> tuple[Tensor, Tensor]:
        return draw(self.generator, self.classes, rows, generator, only)

    def modules(self) -> dict[str, nn.Module]:
        return {"generator": self.generator, "classes": self.classes}

    def about(self) -> tuple[str, ...]:
        if self.task.labels != "noisy":
            return ()
        return ("Randomised response answers for each record: how many there are is public.",)


def _secure_normal(shape: tuple[int, ...]) -> Tensor:
    return torch.as_tensor(Secure().normal(shape)).float()


class FrozenFront(DPSGDGan):
    """A discriminator of fixed random convolutions, clipped as in the paper, and a trainable linear head: sound.

    Claim. The run is (ε, δ)-differentially private for adding or removing a record (x, y), ε by the ledger.

    Proof. The front φ is drawn from the seed before any record is seen, so h(x) = φ(x)/max(1, ‖φ(x)‖) is a fixed
    function of one record with ‖h‖ ≤ 1. With the logit D = w·h + b + e_y·h and s = −σ(−D) ∈ (−1, 0), the loss of a
    record has the gradient s·(h, 1, h in row y), of norm ≤ √(1 + 1 + 1) = √3: the clip of the features is the clip of
    the gradient. A step reads the records through the sum of these over a Poisson sample and adds N(0, 3σ²) to each
    coordinate, which is the sampled Gaussian mechanism, given the weights so far. These are functions of earlier
    answers, so adaptive composition holds over all steps; the generator and everything else read the weights alone:
    post-processing. ∎

    Why the noise is not where the paper has it. Noise on each record's features, hᵢ + ξᵢ, makes the head's step
    Σ sᵢ(hᵢ + ξᵢ): the same sum, with noise Σ sᵢξᵢ that shrinks with the errors sᵢ and is gone for a record that is
    classified well. And a list of noisy features has a row for each record: one more record is one more row, which no
    noise on the row hides. It could protect a record that is *there or blank* while the number of records is public,
    never one that is added. Noise on the sum hides both.
    """

    name = "frozen-front"

    per_generator = 2
    rates = (1e-2, 2e-3)
    variety = 0.02

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.bound = math.sqrt(3.0 if task.classes > 1 else 2.0)

    def _discriminator(self) -> nn.Module:
        return FrozenDiscriminator(
            self.task.schema.shape, self.task.classes, derive_seed(self.task.seed, self.name, "front")
        )


class FrozenDiscriminator(nn.Module):
    """w·h + b + e_y·h on the features h of a fixed front, clipped to L2 norm 1."""

    def __init__(self, shape: tuple[int, ...], classes: int, seed: int) -> None:
        super().__init__()
        self.front = FixedFront(shape, seed)
        self.head = gan.ProjectionHead(self.front.size, classes)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """x (B, C, H, W), y (B,) → the logit of "real", (B,)."""
        out: Tensor = self.head(self.front(x), y)
        return out
