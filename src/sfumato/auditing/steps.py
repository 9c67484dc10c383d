"""An audit in steps, which need nothing of each other: done here one after the other, or elsewhere side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from sfumato.attacks.attribute.queried_records import QueriedRecords
from sfumato.attacks.base import Attack
from sfumato.attacks.decoder_training import Memo
from sfumato.auditing.plans.base import Plan
from sfumato.auditing.result import Audit, Say
from sfumato.auditing.trials import Found, carry_out, staged
from sfumato.core import compute
from sfumato.core.fresh_seeds import asking
from sfumato.core.randomness import derive_seed


@dataclass(frozen=True)
class AuditStep:
    """``do`` it for what it finds; steps that use the same of ``learners`` train it once if they are done together.

    What is ``slow`` is begun first.
    """

    name: str
    do: Callable[[Say], Found]
    learners: frozenset[int] = frozenset()
    slow: bool = False


@dataclass(frozen=True)
class AuditSteps:
    """The steps of one audit in the order of its report, and what is made of all that they found.

    The figures of a step depend on the seed and on the step, not on what was done before it. ``numbers`` is the size of
    a record, by which threads are chosen. ``notes`` are lines that somebody should hear.
    """

    every: Sequence[AuditStep]
    seed: int
    numbers: int
    conclude: Callable[[Found], Audit]
    notes: Sequence[str] = ()

    def do(self, numbers: Iterable[int], say: Say) -> dict[int, Found]:
        """What these steps found."""
        import sklearn.ensemble  # noqa: F401 - libraries that are loaded later choose threads of their own

        found = {}
        with compute.threads(self.numbers), torch.random.fork_rng(devices=()):
            for number in numbers:
                step = self.every[number]
                torch.manual_seed(derive_seed(self.seed, "step", step.name))
                with asking(step.name):
                    found[number] = step.do(say)
        return found

    def joined(self, found: Mapping[int, Found]) -> Audit:
        """The audit, once every step is done."""
        total = Found()
        for number in range(len(self.every)):
            total.add(found[number])
        with compute.threads(self.numbers):
            return self.conclude(total)

    def audit(self, say: Say) -> Audit:
        """All steps, one after the other."""
        return self.joined(self.do(range(len(self.every)), say))

    def together(self) -> list[tuple[int, ...]]:
        """Steps that share what they train, in one group each; those that are likely to be long come first."""
        groups: list[tuple[frozenset[int], tuple[int, ...]]] = []
        for number, step in enumerate(self.every):
            mine = [group for group in groups if group[0] & step.learners]
            others = [group for group in groups if not group[0] & step.learners]
            learners = step.learners.union(*(group[0] for group in mine))
            members = sorted(number for group in mine for number in group[1])
            groups = [*others, (learners, (*members, number))]

        def haste(group: tuple[frozenset[int], tuple[int, ...]]) -> tuple[bool, int, int]:
            slow = bool(group[0]) or any(self.every[number].slow for number in group[1])
            return not slow, -len(group[1]), group[1][0]

        return [group[1] for group in sorted(groups, key=haste)]


def attack_steps(plans: Sequence[Plan], attacks: Sequence[Attack], name: str) -> Iterator[AuditStep]:
    """A step for each attack."""
    for attack in attacks:

        def do(say: Say, attack: Attack = attack) -> Found:
            return carry_out([staged(plans, attack)], name, say)

        yield AuditStep(f"{attack.name}|{attack.target()}", do, frozenset(_learners(attack)), attack.slow)


def _learners(owner: Any) -> Iterator[int]:
    """What an attack, or an attack within it, learns once and keeps; questions are asked again in no time."""
    if isinstance(owner, QueriedRecords):
        return
    for value in vars(owner).values():
        if isinstance(value, Memo):
            yield id(value)
        elif type(value).__module__.startswith(Attack.__module__.partition(".")[0]) and hasattr(value, "__dict__"):
            yield from _learners(value)
