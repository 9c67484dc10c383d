"""Counters for tests of `synth`'s methods: one that writes its answers down, one that gives them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from sfumato.core.dataset import Dataset
from sfumato.core.schema import Schema
from sfumato.mechanisms.base import no_progress
from sfumato.mechanisms.synth.methods.method import Method, Task
from sfumato.privacy.discrete_gaussian import DoubleArray, RepeatableNoise
from sfumato.privacy.ledger import Ledger, calibrated
from sfumato.privacy.query_counter import Counter, QueryCounter, Records, Rows


class Recorder(QueryCounter):
    """A counter with repeatable noise that keeps every answer."""

    def __init__(self, records: Records, ledger: Ledger, seed: int = 0) -> None:
        super().__init__(records, ledger, noise=RepeatableNoise(seed))
        self.answers: list[Any] = []

    def _answer(self, name: str, total: Callable[[Records], DoubleArray], sensitivity: float) -> DoubleArray:
        self.answers.append(super()._answer(name, total, sensitivity).copy())
        return self.answers[-1].copy()

    def sampled(self, name: str, rows: Rows, bound: float) -> torch.Tensor:
        self.answers.append(super().sampled(name, rows, bound).clone())
        return self.answers[-1].clone()


class Replay(Counter):
    """Lets the method's functions look at other records, and answers what a recorder answered."""

    def __init__(self, records: Records, answers: list[Any]) -> None:
        self._records, self._left = records, list(answers)

    def _answer(self, name: str, total: Callable[[Records], DoubleArray], sensitivity: float) -> DoubleArray:
        total(self._records)
        answer: DoubleArray = self._left.pop(0).copy()
        return answer

    def sampled(self, name: str, rows: Rows, bound: float) -> torch.Tensor:
        rows(self._records.take(slice(0, 40)))
        answer: torch.Tensor = self._left.pop(0).clone()
        return answer

    def bypass(self, reason: str) -> Records:
        raise AssertionError(f"asked for the records: {reason}")


def records_of(data: Dataset) -> Records:
    (labels,) = data.utility.values()
    return Records(torch.from_numpy(data.x.copy()), torch.from_numpy(labels.copy()))


def task_of(schema: Schema, *, classes: int = 10, epsilon: float = 3.0, steps: int = 6, labels: str = "data") -> Task:
    return Task(schema, classes, epsilon, 1e-5, labels, steps)


def learnt(method: Method, counter: Counter) -> dict[str, torch.Tensor]:
    """Every stored number after learning."""
    method.learn(counter, no_progress)
    return {
        f"{name}.{key}": value.clone()
        for name, module in method.modules().items()
        for key, value in module.state_dict().items()
    }


def ledger_for(method: Method, records: Records) -> Ledger:
    task = method.task
    return Ledger(calibrated(method.plan(len(records)), task.epsilon, task.delta), task.epsilon, task.delta)


def assert_learns_from_answers_alone(make: Callable[[], Method], records: Records) -> None:
    """With the same answers, a data set that has one record more and others altered teaches exactly the same."""
    first = make()
    recorder = Recorder(records, ledger_for(first, records))
    before = learnt(first, recorder)
    assert recorder.ledger.complete
    more = Records(torch.cat([1.0 - records.x[:1], records.x.flip(0)]), torch.cat([records.y[-1:], records.y.flip(0)]))
    after = learnt(make(), Replay(more, recorder.answers))
    assert before.keys() == after.keys()
    for name, value in before.items():
        assert torch.equal(value, after[name]), name
