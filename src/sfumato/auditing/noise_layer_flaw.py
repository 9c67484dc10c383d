"""Why a noise layer does not make the layers before it private: Theorem 2 of the ``synth`` paper, refuted by counting.

The discriminator sees a batch with a record and without it. The adversary sees the gradient of a convolution before
the noise, knows the weights and all other records, and says which of the two it was; fresh noise each time, and a rule
that was fixed before the counted draws. A step claims to be one Gaussian mechanism on the clipped features, ε(σ) at δ;
the count gives a lower bound of every true ε.

zero     others all blank: the gradient of a batch of blanks is exactly 0. Not 0 means that the record is there.
span     others natural: the rows of the third convolution's gradient lie in the span of the patches that go into it.
         The adversary knows those of the others; a gradient that leaves their span means that the record is there.
linear   others natural: the direction between both mean gradients, each coordinate divided by its variance, from draws
         of their own. Nothing here hangs on an exact zero.

The gradient of generated pictures is left out. It is no part of the promise: it depends on no record, and a generator
that draws blanks adds exactly 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.mechanisms.synth.gan_networks import GaussianNoiseLayer, NoisyDiscriminator, SmallDiscriminator
from sfumato.mechanisms.synth.per_record_gradients import record_gradients
from sfumato.privacy.gaussian_mechanism import gaussian_epsilon
from sfumato.privacy.lower_bounds import epsilon_lower_bound
from sfumato.privacy.query_counter import clipped

BLANKS = 8
_Draw = Callable[[], Tensor]
_Rule = Callable[[Tensor], float]


@dataclass(frozen=True)
class Finding:
    """How often a rule said "the record is there": ``hits`` with it, ``alarms`` without it, of ``draws`` each."""

    test: str
    layer: str
    sigma: float
    delta: float
    hits: int
    alarms: int
    draws: int

    @property
    def claimed(self) -> float:
        """ε of one Gaussian mechanism with this noise multiplier, exactly."""
        return gaussian_epsilon(self.sigma, self.delta, 1.0)

    @property
    def bound(self) -> float:
        """The ε that a true guarantee must reach, with 95 % confidence."""
        return epsilon_lower_bound(self.hits, self.draws, self.alarms, self.draws, self.delta)

    @property
    def refutes(self) -> bool:
        return self.bound > self.claimed


class Front:
    """The paper's discriminator, new and without labels, and the gradients of its three layers before the noise."""

    def __init__(self, shape: tuple[int, ...], sigma: float, seed: int) -> None:
        self._chance = torch.Generator().manual_seed(seed)
        noise = GaussianNoiseLayer(lambda size: torch.randn(size, generator=self._chance))
        noise.sigma = sigma
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = NoisyDiscriminator(shape, 1, noise)
        self.convolutions = [layer for layer in self.network.before if isinstance(layer, nn.Conv2d)]

    def gradients(self, x: Tensor) -> list[Tensor]:
        """∂ Σ log(1 + e^−D(xᵢ))/∂W of the layers before the noise, each (o, c·k·k); new noise at every call."""
        logits = self.network(x, torch.zeros(len(x), dtype=torch.int64))
        return self._by(logits, self.convolutions)

    def before_third(self, x: Tensor) -> Tensor:
        """What goes into the third convolution."""
        with torch.no_grad():
            inputs: Tensor = self.network.before[:4](x)
        return inputs

    def third(self, inputs: Tensor) -> Tensor:
        """The third of ``gradients``, from what goes into that layer: the same, and faster."""
        network = self.network
        logits = network.classifier(network.after(network.noise(network.before[4:](inputs))).flatten(1))
        return self._by(logits, self.convolutions[2:])[0]

    def patches(self, inputs: Tensor) -> Tensor:
        """What the third convolution multiplies with its filters: (B·L, c·k·k), a row for each place of its output."""
        rows = F.unfold(inputs, 3, padding=1, stride=2)  # (B, c·k·k, L)
        return rows.transpose(1, 2).flatten(0, 1).double()

    @staticmethod
    def _by(logits: Tensor, layers: list[nn.Conv2d]) -> list[Tensor]:
        found = torch.autograd.grad(F.softplus(-logits).sum(), [layer.weight for layer in layers])
        return [gradient.flatten(1) for gradient in found]


def blank_batches(record: Tensor, *, sigma: float, draws: int, delta: float, seed: int = 0) -> list[Finding]:
    """Rule ``zero`` for a record (1, C, H, W) among blanks, for each of the three layers before the noise."""
    front = Front(tuple(record.shape[1:]), sigma, seed)
    blanks = torch.zeros(BLANKS, *record.shape[1:])
    hits, alarms = torch.zeros(3, dtype=torch.int64), torch.zeros(3, dtype=torch.int64)
    for _ in range(draws):
        alarms += _not_zero(front.gradients(blanks))
        hits += _not_zero(front.gradients(torch.cat([blanks, record])))
    return [
        Finding("zero", f"convolution {number + 1}", sigma, delta, int(hits[number]), int(alarms[number]), draws)
        for number in range(3)
    ]


def _not_zero(gradients: list[Tensor]) -> Tensor:
    return torch.tensor([bool((gradient != 0.0).any()) for gradient in gradients])


def natural_batches(
    others: Tensor, record: Tensor, *, sigma: float, draws: int, delta: float, seed: int = 0
) -> list[Finding]:
    """Rules ``span`` and ``linear`` on the third layer's gradient, for a record among natural others (B, C, H, W)."""
    front = Front(tuple(record.shape[1:]), sigma, seed)
    known, whole = front.before_third(others), front.before_third(torch.cat([others, record]))

    def without() -> Tensor:
        return front.third(known)

    def present() -> Tensor:
        return front.third(whole)

    outside = _complement(front.patches(known))  # (c·k·k, free)
    rules: dict[str, _Rule] = {
        "span": lambda gradient: float((gradient.double() @ outside).norm() / gradient.norm() - 1e-5),
        "linear": _linear_rule(without, present, max(50, draws // 4), delta),
    }
    return [
        Finding(name, "convolution 3", sigma, delta, *counts, draws)
        for name, counts in _count(rules, without, present, draws)
    ]


def sound_steps(others: Tensor, record: Tensor, *, sigma: float, draws: int, delta: float, seed: int = 0) -> Finding:
    """The same question to a step of DP-SGD with the same claim: Σ clip(∂ℓᵢ/∂w, 1) + N(0, σ²), all layers.

    The rule is the best there is, the projection on the record's own clipped gradient (Neyman and Pearson).
    """
    chance = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = SmallDiscriminator(tuple(record.shape[1:]), 1)

    def total(x: Tensor) -> Tensor:
        y = torch.zeros(len(x), dtype=torch.int64)
        return clipped(record_gradients(network, lambda: F.softplus(-network(x, y))), 1.0)

    base, own = total(others).sum(dim=0), total(record)[0]  # (m,), (m,)

    def without() -> Tensor:
        return base + sigma * torch.randn(base.shape, generator=chance)

    def present() -> Tensor:
        return without() + own

    def along(gradient: Tensor) -> float:
        return float((gradient - base) @ own / own.norm())

    threshold = _threshold(without, present, along, max(50, draws // 4), delta)
    ((_, counts),) = _count({"": lambda gradient: along(gradient) - threshold}, without, present, draws)
    return Finding("best", "DP-SGD, all layers", sigma, delta, *counts, draws)


def _count(rules: dict[str, _Rule], without: _Draw, present: _Draw, draws: int) -> list[tuple[str, tuple[int, int]]]:
    """Hits and alarms of rules that say "there" above 0."""
    hits, alarms = dict.fromkeys(rules, 0), dict.fromkeys(rules, 0)
    for _ in range(draws):
        for found, gradient in ((alarms, without()), (hits, present())):
            for name, rule in rules.items():
                found[name] += rule(gradient) > 0.0
    return [(name, (hits[name], alarms[name])) for name in rules]


def _complement(patches: Tensor) -> Tensor:
    """An orthonormal basis (d, free) of what no combination of the patches (p, d) reaches."""
    _, lengths, axes = torch.linalg.svd(patches, full_matrices=True)
    rank = int((lengths > 1e-6 * lengths[0]).sum())
    free: Tensor = axes[rank:].T
    return free


def _linear_rule(without: _Draw, present: _Draw, draws: int, delta: float) -> _Rule:
    """Fisher's direction with a diagonal covariance, and the threshold that proves most on draws of its own."""
    low, high = (torch.stack([draw().flatten() for _ in range(draws)]) for draw in (without, present))
    direction = (high.mean(dim=0) - low.mean(dim=0)) / (low.var(dim=0) + high.var(dim=0) + 1e-30)

    def along(gradient: Tensor) -> float:
        return float(gradient.flatten() @ direction)

    threshold = _threshold(without, present, along, draws, delta)
    return lambda gradient: along(gradient) - threshold


def _threshold(without: _Draw, present: _Draw, along: _Rule, draws: int, delta: float) -> float:
    low, high = (torch.tensor([along(draw()) for _ in range(draws)]) for draw in (without, present))

    def proves(threshold: float) -> float:
        hits, alarms = int((high > threshold).sum()), int((low > threshold).sum())
        return epsilon_lower_bound(hits, draws, alarms, draws, delta)

    candidates: list[float] = torch.cat([low, high]).tolist()
    return max(candidates, key=proves)
