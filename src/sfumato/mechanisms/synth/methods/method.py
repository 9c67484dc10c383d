"""The contract of a method of `synth`: what it will ask, what it learns from the answers, what it can draw."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from sfumato.core.errors import UsageError
from sfumato.core.schema import Schema
from sfumato.mechanisms.base import Progress
from sfumato.mechanisms.synth.smooth_warps import BEND
from sfumato.privacy.ledger import Ask, Plan
from sfumato.privacy.query_counter import Counter


@dataclass(frozen=True)
class Task:
    """What is to be learnt: records of ``schema`` in ``classes`` joint classes of the utility labels (1: no labels).

    ``epsilon`` is the target, for constants that depend on how much can be asked; ``steps`` 0 means the method's own.
    ``labels`` says what is protected about y: ``data`` ((x, y) is one record), ``noisy`` (Theorem 3), ``public`` or
    ``none`` (there are no labels). ``seed`` is of public randomness only: initial weights, sampling, never noise.
    ``bend`` is how far a method that bends its pictures does so.
    """

    schema: Schema
    classes: int
    epsilon: float
    delta: float
    labels: str = "data"
    steps: int = 0
    seed: int = 0
    bend: float = BEND


def public_number(records: int) -> int:
    """The number of records rounded up to a power of two: so much of it may decide sampling rates, and is published."""
    return 1 << max(records - 1, 0).bit_length()


class Method(ABC):
    """Built from a ``Task`` alone: nothing of it, sizes of networks included, may depend on private records.

    ``learn`` sees the records through the counter only. All that ``sample`` needs is in ``modules`` (weights and
    buffers, of shapes that the task decides), so that a stored method can be built and filled again.
    """

    name: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]] = ("image",)
    """Kinds of data that it can make."""
    labels: ClassVar[tuple[str, ...]] = ("data", "none")
    """What it can protect about the labels."""
    doubt: ClassVar[str | None] = None
    """Why the claimed ε is not proven; None for a sound method."""
    resumable: ClassVar[bool] = True
    """Whether every answer is kept on disk, so that an interrupted run asks nothing twice."""

    def __init__(self, task: Task) -> None:
        self.task = task

    @abstractmethod
    def plan(self, records: int) -> tuple[Ask, ...]:
        """Every question, with its share of the budget. ``records`` is their ``public_number``, for sampling rates."""

    @abstractmethod
    def learn(self, counter: Counter, progress: Progress) -> None:
        """Ask, and keep in ``modules`` what drawing needs."""

    @abstractmethod
    def sample(
        self, rows: int, generator: torch.Generator, only: int | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """So many synthetic records: x (rows, *shape) in [0, 1] and y (rows,); of one class, if ``only`` names it."""

    def sample_given(
        self, rows: int, generator: torch.Generator, values: Mapping[str, str], only: int | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As ``sample``, with these categories in columns of x: {"job": "cook"}."""
        if values:
            raise UsageError(f"synth: {self.name} draws for labels only, not for column '{next(iter(values))}'.")
        return self.sample(rows, generator, only)

    @abstractmethod
    def modules(self) -> dict[str, nn.Module]:
        """What is stored."""

    def least(self, plan: Plan) -> float:
        """A class with fewer records than this drowns in the noise of a calibrated plan; 0 if that cannot happen."""
        return 0.0

    def about(self) -> tuple[str, ...]:
        """Further conditions for the card."""
        return ()
