"""Several auditors listen to one run of a method and put each of its queries to records of their own.

The run fixes the queries. For fixed queries the noisy answers are as private as the plan says, whatever records they
are about and however often they are redrawn, so everything measured here must respect the claimed ε.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch

from sfumato.privacy.discrete_gaussian import DoubleArray, Noise
from sfumato.privacy.ledger import Ask, Ledger
from sfumato.privacy.neighbouring_worlds import (
    Auditor,
    IntArray,
    Total,
    joined,
    respond,
    response_loss,
    sampled_loss,
    sampled_shift,
)
from sfumato.privacy.query_counter import Records, Rows, clipped, clipped_total

_CHUNK = 2**16
_WIDEST = 40_000_000
"""Most numbers in all canaries' parts of one answer. A wider answer is skipped, which can only weaken the audit."""


class Ear(ABC):
    """Puts every query to records of its own; the method never sees the answer."""

    @abstractmethod
    def sum(self, ask: Ask, total: Total, sensitivity: float) -> None:
        """Handle a sum over all records."""

    @abstractmethod
    def sample(self, ask: Ask, rows: Rows, bound: float) -> None:
        """Handle a clipped sum over a Poisson sample."""

    def response(self, ask: Ask) -> None:  # noqa: B027 — an ear may skip it
        """Handle a randomised response for each record."""


class Listener(Auditor):
    """Answers a method from ``records`` and passes every query on to the ears."""

    def __init__(
        self, records: Records, ledger: Ledger, ears: Sequence[Ear], *, noise: Noise, most: int | None = None
    ) -> None:
        super().__init__(ledger, noise, most)
        self._records, self._ears = records, ears

    def _answer(self, name: str, total: Total, sensitivity: float) -> DoubleArray:
        ask = self.ledger.ask(name)
        answer = self._noise.add(total(self._records), sensitivity, ask.noise)
        for ear in self._ears:
            ear.sum(ask, total, sensitivity)
        self._heard()
        return answer

    def sampled(self, name: str, rows: Rows, bound: float) -> torch.Tensor:
        ask = self.ledger.ask(name)
        randomness = self._noise.randomness()
        answer = clipped_total(self._records.sample(ask.rate, randomness), rows, bound, self._records)
        noise = torch.as_tensor(bound * ask.noise * randomness.normal(tuple(answer.shape))).to(answer.dtype)
        for ear in self._ears:
            ear.sample(ask, rows, bound)
        self._heard()
        return answer + noise

    def responses(self, name: str) -> torch.Tensor:
        ask = self.ledger.ask(name)
        for ear in self._ears:
            ear.response(ask)
        given = respond(self._records.y.numpy(), ask, self._noise.randomness())
        self._heard()
        return torch.as_tensor(given)


class Pair(Ear):
    """Collects the privacy losses, as defined by ``Twin``, of many transcripts in each of two neighbouring worlds.

    D′ has ``record`` beside ``common``; D has nothing, or ``instead`` if two files differ in more than one record. Only
    the answer's component along v = f(D′) − f(D) distinguishes the worlds, so only that is drawn.
    """

    def __init__(
        self, common: Records, record: Records, draws: int, noise: Noise, instead: Records | None = None
    ) -> None:
        self._common = common if instead is None else joined(common, instead)
        self._record, self._joined, self._noise = record, joined(common, record), noise
        self.without, self.within = np.zeros(draws), np.zeros(draws)

    def sum(self, ask: Ask, total: Total, sensitivity: float) -> None:
        size = float(np.linalg.norm(total(self._joined) - total(self._common)))
        if size == 0.0:
            return
        scale = size / (ask.noise * sensitivity) ** 2
        for losses, place in ((self.without, -size / 2.0), (self.within, size / 2.0)):
            for start in range(0, len(losses), _CHUNK):
                part = losses[start : start + _CHUNK]
                part += self._noise.add(np.full(len(part), place), sensitivity, ask.noise) * scale

    def sample(self, ask: Ask, rows: Rows, bound: float) -> None:
        randomness, sigma = self._noise.randomness(), bound * ask.noise
        if len(self._record) == 0:
            return
        _, shift = sampled_shift(self._common, self._record, rows, bound, ask.rate, randomness)
        size = float(shift.norm())
        if size == 0.0:
            return
        for losses, rate in ((self.without, 0.0), (self.within, ask.rate)):
            along = sigma * randomness.normal(losses.shape)
            if rate:
                along += size * (randomness.uniform(losses.shape) < rate)
            losses[:] += sampled_loss(along * size, size, sigma, ask.rate)

    def response(self, ask: Ask) -> None:
        if len(self._record) == 0:
            return
        code = int(self._record.y[0])
        for losses, there in ((self.without, False), (self.within, True)):
            given = respond(np.full(len(losses), code), ask, self._noise.randomness(), there=there)
            losses[:] += response_loss(given, code, ask)


class Crowd(Ear):
    """Adds to ``common`` the canaries whose coin is 1, and collects what the answers reveal about the coins.

    An answer is a = f(common) + Σ bᵢ·vᵢ + σ·noise, with vᵢ the part of canary i (times the rate, for a sample). All
    answers together give the Gram matrix G = Σ vᵢ·vⱼ/σ² and the residuals r = Σ ⟨a − f(common) − ½Σⱼ vⱼ, vᵢ⟩/σ².
    """

    def __init__(self, common: Records, canaries: Records, coins: IntArray, noise: Noise) -> None:
        self._common, self._canaries, self._noise = common, canaries, noise
        self._coins = torch.as_tensor(coins == 1)
        self._everyone = joined(common, canaries.take(self._coins))
        self._each = [canaries.take(slice(i, i + 1)) for i in range(len(coins))]
        self._gram = np.zeros((len(coins), len(coins)))
        self._residual = np.zeros(len(coins))

    def estimates(self) -> DoubleArray:
        """Return the linear estimate of each coin − ½ with the least expected squared error, (G + 4)⁻¹ r.

        The 4 is the inverse of a coin's variance, ¼.
        """
        return np.asarray(np.linalg.solve(self._gram + 4.0 * np.eye(len(self._gram)), self._residual))

    def sum(self, ask: Ask, total: Total, sensitivity: float) -> None:
        without = total(self._common)
        if without.size * len(self._each) > _WIDEST:
            return
        answer = self._noise.add(total(self._everyone), sensitivity, ask.noise)
        each = np.stack([total(record).ravel() for record in self._each])
        self._told((answer - without).ravel(), each, ask.noise * sensitivity)

    def sample(self, ask: Ask, rows: Rows, bound: float) -> None:
        randomness, sigma = self._noise.randomness(), bound * ask.noise
        each = clipped(rows(self._canaries), bound).double()  # (canaries, m)
        if each.numel() > _WIDEST:
            return
        here = self._coins & torch.as_tensor(randomness.uniform((len(self._coins),)) < ask.rate)
        noise = torch.as_tensor(sigma * randomness.normal((each.shape[1],)))
        self._told((each[here].sum(dim=0) + noise).numpy(), ask.rate * each.numpy(), sigma)

    def _told(self, shift: DoubleArray, each: DoubleArray, sigma: float) -> None:
        self._gram += each @ each.T / sigma**2
        self._residual += each @ (shift - 0.5 * each.sum(axis=0)) / sigma**2
