"""Access to private records through a counter: a method sees noisy answers and nothing else.

Contributions are clipped here, so the sensitivity of an answer is its ``bound`` whatever function the method passes, as
long as that function treats every record on its own (no batch norm, no ranks, no state shared between rows).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from sfumato.core.errors import DataError, RuleBroken
from sfumato.core.randomness import Randomness
from sfumato.core.run_folder import read_tensors, write_tensors_once
from sfumato.privacy.discrete_gaussian import DoubleArray, ExactNoise, Noise
from sfumato.privacy.ledger import Ask, Ledger

CHUNK = 1024
"""Records processed at a time; a method may turn each into 10,000 numbers."""


@dataclass(frozen=True)
class Records:
    """x (n, *shape), float32 in [0, 1], and y (n,), class codes; without labels all y are 0.

    Where people have several records, ``who`` (n,) numbers the person of each, and ``weight`` (n,) is what it counts.
    The weights of a person add up to 1 at most: if every record's part rⱼ of a sum is clipped to ``bound``, all records
    of a person move it by ‖Σ wⱼ·rⱼ‖ ≤ Σ wⱼ·‖rⱼ‖ ≤ bound. The sensitivity for a person is that for a record.
    """

    x: torch.Tensor
    y: torch.Tensor
    weight: torch.Tensor | None = None
    who: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: torch.Tensor | slice) -> Records:
        weight, who = (None if each is None else each[rows] for each in (self.weight, self.who))
        return Records(self.x[rows], self.y[rows], weight, who)

    def weighted(self, values: torch.Tensor) -> torch.Tensor:
        """Return (n, m) values times the weight of each record."""
        return values if self.weight is None else values * self.weight.to(values.dtype).unsqueeze(1)

    def sample(self, rate: float, randomness: Randomness) -> Records:
        """Return a Poisson sample of the people, with all records of each."""
        people = len(self) if self.who is None else int(self.who.max()) + 1 if len(self) else 0
        there = torch.as_tensor(randomness.uniform((people,)) < rate)
        return self.take(there if self.who is None else there[self.who])

    def chunks(self) -> Iterator[Records]:
        """Iterate over the records, ``CHUNK`` at a time."""
        for start in range(0, len(self), CHUNK):
            yield self.take(slice(start, start + CHUNK))


Rows = Callable[[Records], torch.Tensor]
"""A function of each record on its own: n records → (n, m)."""
Groups = Callable[[Records], torch.Tensor]
"""The group of each record, from that record alone: n records → (n,) codes."""
Pairs = Callable[[Records], tuple[torch.Tensor, torch.Tensor]]
Places = Callable[[Records], torch.Tensor]
"""The cell of each record in each of T tables, from that record alone: n records → (n, T)."""


class Counter(ABC):
    """The queries a method may ask. Subclasses decide how a true sum becomes an answer."""

    @abstractmethod
    def _answer(self, name: str, total: Callable[[Records], DoubleArray], sensitivity: float) -> DoubleArray:
        """Answer a planned query about all records."""

    @abstractmethod
    def sampled(self, name: str, rows: Rows, bound: float) -> torch.Tensor:
        """Return Σ clip(row, bound) over a Poisson sample of the records, with noise: (m,). The step of DP-SGD."""

    @abstractmethod
    def bypass(self, reason: str) -> Records:
        """Return the records themselves, for a method published without a proof; the ledger keeps the reason."""

    def claim(self, name: str) -> float:
        """Return the noise multiplier of a planned query that a method answers itself, after ``bypass``."""
        raise RuleBroken(f"'{name}': this counter does not support claims.")

    def responses(self, name: str) -> torch.Tensor:
        """Return each record's class code after randomised response: (n,), in the order of the records.

        The response of record i depends on yᵢ alone. The number of records n is revealed.
        """
        raise RuleBroken(f"'{name}': this counter does not support randomised response.")

    def sums(self, name: str, rows: Rows, bound: float, *, groups: Groups | None = None, size: int = 1) -> DoubleArray:
        """Return Σ clip(row, bound) over the records of each of ``size`` groups, with noise: (size, m).

        A record is in one group and moves that group's sum by at most ``bound``, so ``bound`` is the L2 sensitivity
        over all groups.
        """

        def total(records: Records) -> DoubleArray:
            found: torch.Tensor | None = None
            for chunk in records.chunks():
                values = chunk.weighted(clipped(rows(chunk).double(), bound))  # (n, m)
                found = torch.zeros(size, values.shape[1], dtype=torch.float64) if found is None else found
                found.index_add_(0, _codes(groups, chunk, size), values)
            return np.asarray(_something(found, name).numpy())

        return self._answer(name, total, bound)

    def tables(self, name: str, places: Places, sizes: Sequence[int], weights: Sequence[float]) -> list[DoubleArray]:
        """Return how many records fall into each cell of T tables, with noise: T arrays (sizes[t],).

        All tables are one answer, so that weights may follow from earlier answers while the plan is fixed. A record is
        in one cell of each table and adds wₜ = ``weights[t]``/‖``weights``‖ there: it moves the answer by
        √(Σ wₜ²) = 1, the sensitivity. Table t, divided by wₜ, has noise of deviation σ/wₜ (``deviations``).
        """
        scale = unit_weights(weights)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        each = torch.as_tensor(np.asarray(sizes, dtype=np.int64)) - 1

        def total(records: Records) -> DoubleArray:
            found = np.zeros(int(starts[-1]))
            for chunk in records.chunks():
                cells = places(chunk).clamp(min=0)  # (n, T)
                flat = (torch.minimum(cells, each) + torch.as_tensor(starts[:-1])).numpy()
                heavy = None
                if chunk.weight is not None:
                    heavy = np.repeat(chunk.weight.double().numpy(), flat.shape[1])
                found += np.bincount(flat.ravel(), heavy, minlength=len(found))
            return np.asarray(found * np.repeat(scale, sizes))

        answer = self._answer(name, total, 1.0)
        return [answer[start:end] / weight for start, end, weight in zip(starts, starts[1:], scale, strict=False)]

    def moments(
        self, name: str, rows: Rows, bound: float, *, groups: Groups | None = None, size: int = 1
    ) -> DoubleArray:
        """Return Σ r rᵀ with r = clip(row, bound) over each group, with noise: (size, k, k), symmetric.

        The sensitivity is ‖r rᵀ‖ = ‖r‖² ≤ bound². Noise is added to the diagonal and √2 times the upper triangle, which
        has the same norm and halves the variance of the noise off the diagonal.
        """

        def total(records: Records) -> DoubleArray:
            found: torch.Tensor | None = None
            for chunk in records.chunks():
                values = clipped(rows(chunk).double(), bound)  # (n, k)
                heavy, width = chunk.weighted(values), values.shape[1]
                found = torch.zeros(size, width, width, dtype=torch.float64) if found is None else found
                codes = _codes(groups, chunk, size)
                for code in torch.unique(codes).tolist():
                    found[code] += heavy[codes == code].T @ values[codes == code]
            return _packed(np.asarray(_something(found, name).numpy()))

        return _unpacked(self._answer(name, total, bound**2))

    def products(self, name: str, pairs: Pairs, bound: float) -> DoubleArray:
        """Return Σ clip(a bᵀ, bound) over the records, with noise: (|a|, |b|). The gradient of a linear layer."""

        def total(records: Records) -> DoubleArray:
            found: torch.Tensor | None = None
            for chunk in records.chunks():
                left, right = pairs(chunk)  # (n, a), (n, b)
                norms = left.norm(dim=1) * right.norm(dim=1)  # of a bᵀ, without forming it
                factor = chunk.weighted((bound / norms.clamp(min=bound)).unsqueeze(1))
                finite = torch.isfinite(norms)
                if not finite.all():
                    left, right, factor = left[finite], right[finite], factor[finite]
                if left.shape[1] < right.shape[1]:  # the smaller one is cheaper to scale
                    left = left * factor
                else:
                    right = right * factor
                part = left.double().T @ right.double()
                found = part if found is None else found + part
            return np.asarray(_something(found, name).numpy())

        return self._answer(name, total, bound)


class QueryCounter(Counter):
    """The records and the ledger of one private run. Answers are stored, so a resumed run does not ask twice."""

    def __init__(
        self, records: Records, ledger: Ledger, *, noise: Noise | None = None, kept: Path | None = None
    ) -> None:
        self._records, self.ledger = records, ledger
        self._noise = noise or ExactNoise()
        self._kept = kept
        self._number = 0

    def _answer(self, name: str, total: Callable[[Records], DoubleArray], sensitivity: float) -> DoubleArray:
        ask = self._ask(name, "sum")
        if ask.rate < 1.0:
            raise RuleBroken(f"'{name}' is planned on samples but was asked of all records.")
        return self._once(name, lambda: self._noise.add(total(self._records), sensitivity, ask.noise))

    def _ask(self, name: str, kind: str) -> Ask:
        ask = self.ledger.ask(name)
        if ask.kind != kind:
            raise RuleBroken(f"'{name}' is planned as a {ask.kind} but was asked as a {kind}.")
        return ask

    def _once(self, name: str, make: Callable[[], DoubleArray]) -> DoubleArray:
        """Return the stored answer if the run has one, else make and store it."""
        file = None if self._kept is None else self._kept / f"{self._number:04d}.safetensors"
        self._number += 1
        if file is not None and file.exists():
            return _kept_answer(file, name)
        answer = make()
        if file is None:
            return answer
        # Store the answer before anyone sees it. If another process stored one first, that one counts.
        kept = write_tensors_once(file, {name: torch.as_tensor(answer)})
        return answer if kept else _kept_answer(file, name)

    def sampled(self, name: str, rows: Rows, bound: float) -> torch.Tensor:
        ask = self._ask(name, "sum")
        randomness = self._noise.randomness()
        total = clipped_total(self._records.sample(ask.rate, randomness), rows, bound, self._records)
        return total + torch.as_tensor(bound * ask.noise * randomness.normal(tuple(total.shape))).to(total.dtype)

    def responses(self, name: str) -> torch.Tensor:
        ask = self._ask(name, "response")

        def respond() -> DoubleArray:
            chance, drawn = self._noise.randomness().uniform((2, len(self._records)))
            return np.asarray(np.where(chance < ask.noise, np.floor(drawn * ask.size), self._records.y.numpy()))

        return torch.as_tensor(self._once(name, respond), dtype=torch.int64)

    def bypass(self, reason: str) -> Records:
        self.ledger.bypassed = reason
        return self._records

    def claim(self, name: str) -> float:
        if self.ledger.bypassed is None:
            raise RuleBroken(f"'{name}' was claimed, not asked: only a method that bypassed the counter may do that.")
        return self._ask(name, "sum").noise


def unit_weights(weights: Sequence[float]) -> DoubleArray:
    """Return positive weights scaled to length 1: (T,)."""
    found = np.asarray(weights, dtype=np.float64)
    if len(found) == 0 or not (np.isfinite(found).all() and found.min() > 0.0):
        raise RuleBroken(f"tables need finite weights above 0, got {found.tolist()[:5]}.")
    return np.asarray(found / np.linalg.norm(found))


def deviations(weights: Sequence[float], noise: float) -> DoubleArray:
    """Return the standard deviation of the noise in each of the tables of ``Counter.tables``: (T,)."""
    return np.asarray(noise / unit_weights(weights))


def clipped_total(sample: Records, rows: Rows, bound: float, everyone: Records) -> torch.Tensor:
    """Return Σ clip(row, bound) over a sample that may be empty: (m,)."""
    if len(sample) == 0:
        return torch.zeros_like(rows(everyone.take(slice(0, 1)))[0])  # only its shape matters
    return clipped_sum(rows(sample), bound, sample.weight)


def clipped(values: torch.Tensor, bound: float) -> torch.Tensor:
    """Scale each row down to an L2 norm of at most ``bound``: (n, m). Rows that are not finite become zero."""
    values = torch.where(torch.isfinite(values).all(dim=1, keepdim=True), values, torch.zeros_like(values))
    norms: torch.Tensor = values.norm(dim=1, keepdim=True)
    return values * (bound / norms.clamp(min=bound))


def clipped_sum(values: torch.Tensor, bound: float, weight: torch.Tensor | None = None) -> torch.Tensor:
    """Sum ``clipped(values, bound)``, times the weights, over the rows, (n, m) → (m,), in one pass instead of five."""
    norms: torch.Tensor = values.norm(dim=1)
    if not bool(torch.isfinite(norms).all()):
        values = clipped(values, bound)
        norms = torch.full_like(norms, bound)
    factor = bound / norms.clamp(min=bound)
    return (factor if weight is None else factor * weight.to(factor.dtype)) @ values


def _codes(groups: Groups | None, chunk: Records, size: int) -> torch.Tensor:
    if groups is None:
        return torch.zeros(len(chunk), dtype=torch.int64)
    return groups(chunk).clamp(0, size - 1)


def _something(found: torch.Tensor | None, name: str) -> torch.Tensor:
    if found is None:
        raise DataError(f"'{name}' cannot be answered: there are no records.")
    return found


def _packed(matrices: DoubleArray) -> DoubleArray:
    """Pack symmetric matrices: (g, k, k) → (g, k(k+1)/2), with the same norm."""
    across, down = np.triu_indices(matrices.shape[1])
    return np.asarray(matrices[:, across, down] * np.where(across == down, 1.0, np.sqrt(2.0)))


def _unpacked(rows: DoubleArray) -> DoubleArray:
    """Invert ``_packed``."""
    width = int((np.sqrt(8 * rows.shape[1] + 1) - 1) / 2)
    across, down = np.triu_indices(width)
    matrices = np.zeros((len(rows), width, width))
    matrices[:, across, down] = rows / np.where(across == down, 1.0, np.sqrt(2.0))
    matrices[:, down, across] = matrices[:, across, down]
    return matrices


def _kept_answer(file: Path, name: str) -> npt.NDArray[np.float64]:
    kept = read_tensors(file)
    if list(kept) != [name]:
        raise DataError(f"{file} answers {list(kept)}, not '{name}': another version began this run; fit a new one.")
    return np.asarray(kept[name].numpy())
