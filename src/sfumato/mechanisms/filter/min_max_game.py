"""The min-max game of Eqs. 2–5 on cached latents, for several users at once.

    max_f { min_h E[ℓ(h(z̃), y)] − β·min_ν E[ℓ(ν(z̃), u)] }   s.t.  D(q_f ‖ q_e) ≤ b

No sum, batch statistic or random number is shared in a way that one user's own records could change another's filter:
losses add up over users, Adam works number by number, and the random numbers depend on the step alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.core.dataset import IntArray
from sfumato.core.randomness import derive_seed
from sfumato.core.schema import Schema
from sfumato.mechanisms.filter.batched_mlp import BatchedMLP
from sfumato.mechanisms.filter.budget import enforce, mean_spent
from sfumato.mechanisms.filter.filter_networks import Shape, filters
from sfumato.mechanisms.label_targets import guess_loss, targets, told, widths
from sfumato.mechanisms.storage import load_state_of, state_of
from sfumato.nets.training_loop import adam, decay_rate, take_step
from sfumato.privacy.divergence import Divergence, divergence

ROUNDS = 50
"""Training is saved this many times."""

_STEEP = 10.0
"""Weight of the penalty (D/b − 1)₊²: steep enough that ``enforce`` has little left to shrink."""

_MEASURED = 128
"""Records of a batch whose divergence is computed at each step."""

_HELD_OUT = 1000
"""Own records, at most, that are kept from training for the budget (a tenth of them if fewer)."""

_WIDEST = 10.0
"""Times its first small value that the noise may begin with: as wide as the prior of the latents."""


@dataclass(frozen=True)
class Labels:
    """Targets of some labels for every latent, (labels, N), and the number of classes of each, 1 for a number."""

    codes: Tensor
    classes: tuple[int, ...]

    @classmethod
    def of(cls, labels: Mapping[str, IntArray], schema: Schema) -> Labels:
        return cls(targets(labels, schema), widths(schema, tuple(labels)))


@dataclass(frozen=True)
class Choice:
    """What one user hides and serves; ``own`` are the user's rows, ``public`` those that h and ν may train on, too."""

    private: Labels
    utility: Labels
    own: Tensor
    public: Tensor
    budget: float


@dataclass(frozen=True)
class Rules:
    """The settings that all users of a game share.

    ``hidden`` are the widths of h and ν. The noise begins with ``first_noise`` of the budget, or small if that is 0.
    """

    shape: Shape
    divergence: Divergence
    beta: float
    steps: int
    batch: int
    rate: float
    hidden: tuple[int, ...]
    adversary_steps: int
    first_noise: float
    seed: int


@dataclass(frozen=True)
class Spent:
    """The mean divergence of a user's release on so many held-out records; ``norm`` is ½E‖z̃ − z‖² on them."""

    divergence: float
    records: int
    norm: float | None = None
    """None for filters that were stored before it was measured."""


class MinMaxGame:
    """Filters f, adversaries h and utility classifiers ν of users whose choices have the same numbers of classes."""

    def __init__(self, mean: Tensor, variance: Tensor, choices: Sequence[Choice], rules: Rules) -> None:
        first = choices[0]
        self.mean, self.variance, self.rules = mean, variance, rules
        self._alike = bool((variance == variance[:1]).all())
        self.private_classes, self.utility_classes = first.private.classes, first.utility.classes
        self.private = _Codes([choice.private.codes for choice in choices])
        self.utility = _Codes([choice.utility.codes for choice in choices])
        self.budget = torch.tensor([choice.budget for choice in choices])
        parts = [_hold_out(choice.own, rules.seed) for choice in choices]
        self.held = [held for held, _ in parts]
        rest = [rows for _, rows in parts]
        self.own = _Rows(rest, [choice.public[:0] for choice in choices])
        self.pool = _Rows(rest, [choice.public for choice in choices])
        users, latent = len(choices), mean.shape[1]
        torch.manual_seed(derive_seed(rules.seed, "filter", "weights"))
        self.f = filters(rules.shape, users, latent, sum(self.private_classes))
        self.h = BatchedMLP(users, latent, *rules.hidden, sum(self.private_classes))
        self.nu = BatchedMLP(users, latent, *rules.hidden, sum(self.utility_classes))
        self.optimisers = {
            "f": adam(self.f.parameters(), rules.rate),
            "h": adam(self.h.parameters(), 2 * rules.rate),
            "nu": adam(self.nu.parameters(), 2 * rules.rate),
        }
        if rules.first_noise > 0:
            self._begin_noisy()

    @torch.no_grad()
    def _begin_noisy(self) -> None:
        """Give the noise its first share of the budget.

        From small noise the game ends with records in places whose fine edges h misses and a patient reader finds.
        Noise has no edges, and training takes back what of it costs utility.
        """
        self.f.noise.mul_(_WIDEST)
        self._enforce(self.rules.first_noise)
        self.f.noise.mul_(self.f.scale[:, None, None])
        self.f.scale.fill_(1.0)

    def _modules(self) -> dict[str, nn.Module]:
        return {"f": self.f, "h": self.h, "nu": self.nu}

    def state(self) -> dict[str, Tensor]:
        """Every weight, for an interrupted training."""
        return state_of(self._modules())

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """The inverse of ``state``."""
        load_state_of(self._modules(), tensors, "filter")

    def round(self, number: int) -> dict[str, float]:
        """One of ``ROUNDS`` parts of the training; mean losses over the users at its end."""
        losses: dict[str, float] = {}
        for step in range(number * self.rules.steps // ROUNDS, (number + 1) * self.rules.steps // ROUNDS):
            losses = self._step(step)
        return losses

    def _step(self, step: int) -> dict[str, float]:
        generator = torch.Generator().manual_seed(derive_seed(self.rules.seed, "filter", step))
        for optimiser in self.optimisers.values():
            decay_rate(optimiser, step / self.rules.steps)
        for _ in range(self.rules.adversary_steps):
            rows = self.pool.draw(self.rules.batch, generator)
            with torch.no_grad():
                z = self._release(rows, generator)[0]
            take_step(self.optimisers["h"], self._adversary(z, rows).sum())
        take_step(self.optimisers["nu"], self._utility(z, rows).sum())  # Eq. 5
        rows = self.own.draw(self.rules.batch, generator)
        z, shift, factor = self._release(rows, generator)
        few = rows[:, :_MEASURED]
        D = divergence(self.rules.divergence, shift[:, :_MEASURED], self._spread(few), factor[:, None]).mean(1)
        defined = torch.where(torch.isfinite(D), D, torch.zeros_like(D))
        excess = F.relu(defined / self.budget - 1).clamp(max=10.0).square()  # Eq. 3
        hidden, served = self._adversary(z, rows, most=1.0), self._utility(z, rows)
        take_step(self.optimisers["f"], (self.rules.beta * served - hidden + _STEEP * excess).sum())  # Eq. 2
        with torch.no_grad():  # far outside the budget (or where it has no value) gradients do not lead back
            self.f.scale.mul_(torch.where(D / self.budget <= 2.0, 1.0, 0.95))
        return {
            "private": hidden.mean().item(),
            "utility": served.mean().item(),
            "spent": (D / self.budget).mean().item(),
        }

    def _release(self, rows: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """z̃ (U, B, d) for latents at ``rows`` (U, B), with the shift and noise factor behind it."""
        mean, variance = self.mean[rows], self.variance[rows]
        batch, latent = rows.shape[1], mean.shape[2]
        chance = torch.randn(1, batch, self.f.chance, generator=generator)
        shift, factor = self.f(mean, self._one_hot(rows), chance)
        sample = variance.sqrt() * torch.randn(1, batch, latent, generator=generator)
        noise = torch.randn(1, batch, latent, generator=generator).expand(len(rows), -1, -1)
        return mean + sample + shift + torch.bmm(noise, factor.mT), shift, factor

    def _spread(self, rows: Tensor) -> Tensor:
        """Variances at rows (U, B), or (1, 1, d) where all records have the same: one determinant instead of many."""
        return self.variance[None, :1] if self._alike else self.variance[rows]

    def _one_hot(self, rows: Tensor) -> Tensor:
        """The private labels of rows (U, B) as (U, B, Σ classes); a number stands for itself."""
        codes = self.private.at(rows)
        parts = [told(codes[:, place], classes) for place, classes in enumerate(self.private_classes)]
        return torch.cat(parts, dim=-1).to(self.mean.dtype)

    def _adversary(self, z: Tensor, rows: Tensor, most: float = math.inf) -> Tensor:
        return _loss(self.h(z), self.private.at(rows), self.private_classes, most)

    def _utility(self, z: Tensor, rows: Tensor) -> Tensor:
        return _loss(self.nu(z), self.utility.at(rows), self.utility_classes)

    def enforce(self) -> list[Spent]:
        """Make every filter keep its budget on the user's held-out records; what each spends there."""
        return self._enforce(1.0)

    def _enforce(self, share: float) -> list[Spent]:
        count = torch.tensor([len(held) for held in self.held])
        rows = torch.zeros(len(self.held), _HELD_OUT, dtype=torch.long)  # as wide for few users as for many
        for user, held in enumerate(self.held):
            rows[user, : len(held)] = held
        records = self.mean[rows], self._spread(rows), self._one_hot(rows), torch.arange(_HELD_OUT) < count[:, None]
        seed = derive_seed(self.rules.seed, "filter", "budget")
        found = enforce(self.f, *records, self.rules.divergence, self.budget, seed, share)
        norms = mean_spent(self.f, *records, "norm", seed)
        return [Spent(float(d), int(n), float(norm)) for d, n, norm in zip(found, count, norms, strict=True)]


class _Rows:
    """Row numbers of several users, their own and then the public ones, to draw equally many from.

    What many users have in common is kept once: a copy for each would grow with the square of their number.
    """

    def __init__(self, rows: Sequence[Tensor], public: Sequence[Tensor]) -> None:
        self.own = torch.tensor([[len(own)] for own in rows])  # (U, 1)
        self.count = self.own + torch.tensor([[len(common)] for common in public])
        self.padded = nn.utils.rnn.pad_sequence(list(rows), batch_first=True)  # (U, longest)
        kept = {id(common): common for common in public}
        lengths = [0, *(len(common) for common in kept.values())]
        starts = dict(zip(kept, itertools.accumulate(lengths), strict=False))
        self.start = torch.tensor([[starts[id(common)]] for common in public])
        self.common = torch.cat(
            [*kept.values(), torch.zeros(1, dtype=torch.long)]
        )  # never empty; the last is not drawn

    def draw(self, batch: int, generator: torch.Generator) -> Tensor:
        """(U, batch) with replacement; the same places in everybody's list, whoever else plays."""
        places = (torch.rand(batch, generator=generator) * self.count).long()
        places = torch.minimum(places, self.count - 1)
        own = self.padded.gather(1, torch.minimum(places, self.own - 1))
        beyond = (places - self.own).clamp(min=0)
        return torch.where(places < self.own, own, self.common[self.start + beyond])


class _Codes:
    """Codes of every user's labels, (P, N) each; users with the same labels share one copy."""

    def __init__(self, each: Sequence[Tensor]) -> None:
        kept = {id(codes): codes for codes in each}
        places = {key: place for place, key in enumerate(kept)}
        self.tables = torch.stack(list(kept.values()))  # (T, P, N)
        self.table = torch.tensor([[places[id(codes)]] for codes in each])  # (U, 1)

    def at(self, rows: Tensor) -> Tensor:
        """Codes (U, P, B) at rows (U, B)."""
        return self.tables[self.table, :, rows].mT


def _hold_out(own: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Rows for the budget and rows to train on."""
    order = torch.randperm(len(own), generator=torch.Generator().manual_seed(derive_seed(seed, "filter", "held out")))
    held = min(_HELD_OUT, math.ceil(len(own) / 10))
    return own[order[:held]], own[order[held:]]


def _loss(scores: Tensor, codes: Tensor, classes: Sequence[int], most: float = math.inf) -> Tensor:
    """The loss of each user in units of what a guess loses, a mean over labels, (U,).

    Of classes it is the cross entropy in units of log(classes), of a number the squared error in units of its variance.
    Scores are (U, B, Σ classes), codes (U, P, B). In these units guessing costs about 1 whatever the label, so that β
    means the same for a digit and for a yes or no. The error of a number counts up to ``most``: a square grows without
    end, and to be wrong by more than a guess hides nothing.
    """
    losses, at = [], 0
    for place, count in enumerate(classes):
        part = scores[:, :, at : at + count]
        wanted = codes[:, place]
        if count == 1:
            loss = (part[:, :, 0] - wanted).square().mean(1).clamp(max=most)
        else:
            loss = F.cross_entropy(part.transpose(1, 2), wanted.long(), reduction="none").mean(1) / guess_loss(count)
        losses.append(loss)
        at += count
    return torch.stack(losses).mean(0)
