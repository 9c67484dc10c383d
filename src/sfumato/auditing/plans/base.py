"""What an audit plan is: which attacks are run, what each of them is given, and what it gets without a defence.

A plan works on a ``Scene``, which holds values and no mechanism: a release that somebody else made is audited by the
same plans. Plans compose: what one grants, all attacks have, and each attack is staged by the plan that knows how.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.attacks.base import Attack
from sfumato.auditing.controls import Controls, Values
from sfumato.auditing.effort import Effort
from sfumato.core.dataset import Dataset, FloatArray, Splits
from sfumato.core.knowledge import Knowledge, Truth
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release

Rows = npt.NDArray[np.intp]
Repeat = Callable[[Dataset, int, int], tuple[FloatArray, ...]]
"""Records, a number and a seed → that many further payloads of them, as their own device would make them."""


@dataclass(frozen=True)
class Stage:
    """What one attack is given; ``shown`` are the gallery's rows among its guesses."""

    knowledge: Knowledge
    release: Release
    truth: Truth
    shown: Rows


@dataclass(frozen=True)
class Scene:
    """What is audited.

    release    of the victims
    knowledge  what every attacker has, before a plan grants more
    secrets    behind the victims' release by name, one row a record: for the scorer and for upper bounds
    repeat     makes further releases of the same records; None where nobody can
    shown      the victims in the gallery
    """

    name: str
    splits: Splits
    effort: Effort
    seed: int
    release: Release
    knowledge: Knowledge
    shown: Rows
    secrets: Mapping[str, FloatArray] = field(default_factory=dict)
    repeat: Repeat | None = None
    controls: Controls = field(default_factory=Controls)

    @cached_property
    def truth(self) -> Truth:
        return Truth(self.splits.victim, secrets=self.secrets)

    @cached_property
    def _suspects(self) -> tuple[Dataset, Truth]:
        """Candidates for re-identification, in an order and under ids that say nothing; and who is who."""
        few = min(self.effort.candidates, len(self.splits.victim))
        order = np.random.default_rng(derive_seed(self.seed, "candidates")).permutation(few)
        suspects = self.splits.victim.take(slice(0, few))
        candidates = replace(suspects.take(order), ids=np.arange(few).astype(np.str_))  # ids may count the rows
        return candidates, Truth(suspects, np.argsort(order).astype(np.int64))

    @cached_property
    def _some(self) -> Rows:
        """The victims for attacks that work one by one, those of the gallery first."""
        rest = np.setdiff1d(np.arange(len(self.release)), self.shown)
        return np.concatenate([self.shown, rest])[: max(self.effort.inverted, len(self.shown))]

    def lined_up(self, attack: Attack, knowledge: Knowledge, release: Release, truth: Truth) -> Stage:
        """A re-identification sees as many releases as there are candidates, an attack that works one by one some of
        them; other attacks see all."""
        if attack.one_by_one:
            labels = {name: codes[self._some] for name, codes in release.utility.items()}
            some = replace(release, payload=release.payload[self._some], utility=labels)
            return Stage(knowledge, some, Truth(self.splits.victim.take(self._some)), np.arange(len(self.shown)))
        if attack.threat != "reidentification":
            return Stage(knowledge, release, truth, self.shown)
        candidates, who = self._suspects
        few = replace(release, payload=release.payload[: len(candidates)], utility={})
        return Stage(replace(knowledge, candidates=candidates), few, who, self.shown)


class Plan(ABC):
    """What an audit does about one capability."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    @abstractmethod
    def attacks(self) -> list[Attack]:
        """What is run because of this capability."""

    def grant(self, knowledge: Knowledge) -> Knowledge:
        """With what this capability lets every attacker know."""
        return knowledge

    def stage(self, attack: Attack, knowledge: Knowledge) -> Stage | None:
        """What the attack is given, or None where another plan knows better."""
        return None

    def obstacle(self, attack: Attack) -> str | None:
        """Why the attack makes no sense here, or None."""
        return None

    @abstractmethod
    def control(self, attack: Attack, knowledge: Knowledge) -> Values | None:
        """What the attack gets where nothing is defended, or None where this plan cannot tell."""

    @property
    def inverse_effort(self) -> dict[str, Any]:
        """How hard inverse networks try."""
        effort = self.scene.effort
        return {"epochs": effort.attack_epochs, "width": effort.attack_width, "steps": effort.attack_steps}
