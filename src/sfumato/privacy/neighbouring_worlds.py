"""Counters for auditors, which know the true answers and track how much the noisy ones reveal about a record.

They answer like any counter, but from the auditor's own records and with repeatable noise, so they protect nobody.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch

from sfumato.core.errors import RuleBroken
from sfumato.core.randomness import Randomness
from sfumato.privacy.discrete_gaussian import DoubleArray, Noise
from sfumato.privacy.ledger import Ask, Ledger
from sfumato.privacy.query_counter import Counter, Records, Rows, clipped_total

Total = Callable[[Records], DoubleArray]
"""The true sum over records."""
IntArray = npt.NDArray[np.int64]


class Answered(Exception):
    """Raised when the auditor has all answers it needs: what a method makes of them reveals nothing more."""


class Auditor(Counter):
    """Stops the method with ``Answered`` after the last planned answer, or after the first ``most``."""

    def __init__(self, ledger: Ledger, noise: Noise, most: int | None) -> None:
        self.ledger, self._noise, self._most = ledger, noise, most
        self.answers = 0

    def bypass(self, reason: str) -> Records:
        raise RuleBroken(f"this method reads the records past the counter ({reason}), which its answers do not show.")

    def _heard(self) -> None:
        self.answers += 1
        if self.ledger.complete or self.answers == self._most:
            raise Answered


class Twin(Auditor):
    """Answers from one of two neighbouring worlds, D and D′ = D plus one record, and tracks the privacy loss

        L = log p(answers | D′) − log p(answers | D),

    which is all that any test between the two can use. An answer a = f + σ·noise adds ⟨a − (f(D) + f(D′))/2, v⟩/σ²
    with v = f(D′) − f(D). An answer on a Poisson sample of rate q adds log(1 − q + q·exp((2⟨a − s, v⟩ − ‖v‖²)/2σ²)),
    where s is the sum over the sampled other records: both worlds use the same sample of them, and the adversary is
    assumed to know it. A randomised response adds log(p(code)·k), because that of a blank record is uniform over k.

    f is computed in full for both worlds, which exposes a function that mixes records or clips too little.
    """

    def __init__(
        self,
        common: Records,
        record: Records,
        ledger: Ledger,
        *,
        inside: bool,
        noise: Noise,
        most: int | None = None,
    ) -> None:
        super().__init__(ledger, noise, most)
        self._common, self._record, self._joined = common, record, joined(common, record)
        self._inside = inside
        self.loss = 0.0

    def _answer(self, name: str, total: Total, sensitivity: float) -> DoubleArray:
        ask = self.ledger.ask(name)
        without, within = total(self._common), total(self._joined)
        answer = self._noise.add(within if self._inside else without, sensitivity, ask.noise)
        told = float(((answer - (without + within) / 2.0) * (within - without)).sum())
        self.loss += told / (ask.noise * sensitivity) ** 2
        self._heard()
        return answer

    def sampled(self, name: str, rows: Rows, bound: float) -> torch.Tensor:
        ask = self.ledger.ask(name)
        randomness, sigma = self._noise.randomness(), bound * ask.noise
        without, shift = sampled_shift(self._common, self._record, rows, bound, ask.rate, randomness)
        there = self._inside and bool(randomness.uniform((1,))[0] < ask.rate)
        noise = torch.as_tensor(sigma * randomness.normal(tuple(without.shape)))
        answer = without + noise + (shift if there else 0.0)
        product = np.array(float((answer - without) @ shift))
        self.loss += float(sampled_loss(product, float(shift.norm()), sigma, ask.rate))
        self._heard()
        return answer.to(torch.float32)

    def responses(self, name: str) -> torch.Tensor:
        ask = self.ledger.ask(name)
        randomness, code = self._noise.randomness(), int(self._record.y[0])
        others = respond(self._common.y.numpy(), ask, randomness)
        own = respond(self._record.y.numpy(), ask, randomness, there=self._inside)
        self.loss += float(response_loss(own, code, ask)[0])
        self._heard()
        return torch.as_tensor(np.concatenate([others, own]))


def joined(records: Records, more: Records) -> Records:
    """Append ``more`` records, of other people."""
    x, y = torch.cat([records.x, more.x]), torch.cat([records.y, more.y])
    if records.who is None and more.who is None:
        return Records(x, y)
    (weight, who), (heavy, whose) = _counted(records), _counted(more)
    first = int(who.max()) + 1 if len(who) else 0
    return Records(x, y, torch.cat([weight, heavy]), torch.cat([who, first + whose]))


def _counted(records: Records) -> tuple[torch.Tensor, torch.Tensor]:
    """Return weight and person of each record; without people each is somebody's only one."""
    if records.weight is None or records.who is None:
        return torch.ones(len(records), dtype=torch.float64), torch.arange(len(records))
    return records.weight, records.who


def sampled_shift(
    common: Records, record: Records, rows: Rows, bound: float, rate: float, randomness: Randomness
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the clipped sum over a Poisson sample of ``common``, and how far ``record`` would move it: (m,) each."""
    sample = common.sample(rate, randomness)
    without = clipped_total(sample, rows, bound, record).double()
    return without, clipped_total(joined(sample, record), rows, bound, record).double() - without


def sampled_loss(product: DoubleArray, size: float, sigma: float, rate: float) -> DoubleArray:
    """Return log(1 − q + q·exp((2⟨a − s, v⟩ − ‖v‖²)/2σ²)) given the product ⟨a − s, v⟩ and ``size`` = ‖v‖."""
    told = (2.0 * product - size**2) / (2.0 * sigma**2)
    if rate == 1.0:
        return told
    return np.asarray(np.logaddexp(math.log1p(-rate), math.log(rate) + told))


def respond(codes: IntArray, ask: Ask, randomness: Randomness, *, there: bool = True) -> IntArray:
    """Apply randomised response to each code; if the records are not ``there``, the responses are uniform."""
    chance, drawn = randomness.uniform((2, len(codes)))
    random = chance < (ask.noise if there else 1.0)
    return np.where(random, np.floor(drawn * ask.size), codes).astype(np.int64)


def response_loss(given: IntArray, code: int, ask: Ask) -> DoubleArray:
    """Return the log-likelihood ratio of each response: from ``code`` against from a blank record."""
    return np.asarray(np.log(ask.noise + np.where(given == code, (1.0 - ask.noise) * ask.size, 0.0)))
