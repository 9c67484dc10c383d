"""Small methods of `synth` for tests: noisy class means and spread, in closed form and by steps on samples."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch
from torch import nn

from sfumato.mechanisms.base import Progress
from sfumato.mechanisms.synth import mechanism as synth
from sfumato.mechanisms.synth.methods.method import Method
from sfumato.privacy.ledger import Ask
from sfumato.privacy.query_counter import Counter, Records


class Means(nn.Module):
    """Mean (classes, size) and deviation (size,) of the records."""

    mean: torch.Tensor
    spread: torch.Tensor

    def __init__(self, classes: int, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(classes, size))
        self.register_buffer("spread", torch.ones(size))


class Tiny(Method):
    """Counts, sums and sums of squares; draws independent normals."""

    name = "tiny"
    kinds = ("image", "table")

    def __init__(self, task: object) -> None:
        super().__init__(task)  # type: ignore[arg-type]
        self.model = Means(self.task.classes, self.task.schema.size)

    def plan(self, records: int) -> tuple[Ask, ...]:
        return (Ask("model", "counts", 1.0), Ask("model", "sums", 3.0), Ask("model", "squares", 1.0))

    def learn(self, counter: Counter, progress: Progress) -> None:
        size, classes = self.task.schema.size, self.task.classes
        norm = size**0.5 / 2.0
        ones = counter.sums("counts", lambda r: torch.ones(len(r), 1), 1.0, groups=lambda r: r.y, size=classes)
        sums = counter.sums("sums", lambda r: r.x.flatten(1), norm, groups=lambda r: r.y, size=classes)
        squares = counter.sums("squares", lambda r: r.x.flatten(1) ** 2, norm)
        counts = torch.from_numpy(ones).float().clamp(min=1.0)
        self.model.mean.copy_(torch.from_numpy(sums).float() / counts)
        overall = (self.model.mean * counts).sum(0) / counts.sum()
        spread = torch.from_numpy(squares[0]).float() / counts.sum() - overall**2
        self.model.spread.copy_(spread.clamp(min=1e-4).sqrt())

    def sample(
        self, rows: int, generator: torch.Generator, only: int | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.randint(self.task.classes, (rows,), generator=generator)
        y = y if only is None else torch.full_like(y, only)
        noise = torch.randn(rows, self.task.schema.size, generator=generator)
        x = (self.model.mean[y] + 0.3 * self.model.spread * noise).clamp(0.0, 1.0)
        return x.reshape(rows, *self.task.schema.shape), y

    def modules(self) -> dict[str, nn.Module]:
        return {"model": self.model}


class Stepwise(Tiny):
    """The same means by thirty steps on Poisson samples."""

    name = "stepwise"

    def plan(self, records: int) -> tuple[Ask, ...]:
        return (Ask("model", "steps", 1.0, count=30, rate=0.2),)

    def learn(self, counter: Counter, progress: Progress) -> None:
        flat = self.model.mean.view(-1)

        def rows(records: Records) -> torch.Tensor:
            pull = torch.zeros(len(records), *self.model.mean.shape)
            pull[torch.arange(len(records)), records.y] = records.x.flatten(1) - self.model.mean[records.y]
            return pull.flatten(1)

        for _ in range(30):
            flat += 0.01 * counter.sampled("steps", rows, 1.0)


class Doubtful(Tiny):
    """Looks at the records themselves."""

    name = "doubtful"
    doubt = "it looks."


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `synth` know these methods until the test is over."""
    module = ModuleType("sfumato.mechanisms.synth.methods.tiny")
    for cls in (Tiny, Stepwise, Doubtful):
        setattr(module, cls.__name__, cls)
        monkeypatch.setitem(synth._HOME, cls.name, ("tiny", cls.__name__))
    monkeypatch.setitem(sys.modules, module.__name__, module)
