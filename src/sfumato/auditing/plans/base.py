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
from sfumato.attacks.linkage.person_embedding import fit_embedding, person_likeness, repeated
from sfumato.auditing.controls import Controls, Values
from sfumato.auditing.effort import Effort
from sfumato.core.dataset import Dataset, FloatArray, IntArray, Splits
from sfumato.core.knowledge import Knowledge, Likeness, OtherRelease, PublicView, Query, Truth
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release
from sfumato.core.threats import LINKAGE

Rows = npt.NDArray[np.intp]
Repeat = Callable[[Dataset, int, int], tuple[FloatArray, ...]]
"""Records, a number and a seed → that many further payloads of them, as their own device would make them."""


_MOST_LINKED = 20
"""Records of one person in each of two releases."""


@dataclass(frozen=True)
class Stage:
    """What one attack is given; ``shown`` are the gallery's rows among its guesses."""

    knowledge: Knowledge
    release: Release
    truth: Truth
    shown: Rows


@dataclass(frozen=True)
class SecondRelease:
    """A further release of the same victims, by another pipeline: payloads in the victims' order, and how it answers
    the attacker."""

    payload: FloatArray
    query: Query


@dataclass(frozen=True)
class Scene:
    """What is audited.

    release    of the victims
    knowledge  what every attacker has, before a plan grants more
    secrets    behind the victims' release by name, one row a record: for the scorer and for upper bounds
    repeat     makes further releases of the same records; None where nobody can
    shown      the victims in the gallery
    second     another release of the victims, with which theirs may be linked
    public     attacker's and victims' records in a public embedding, (n, E) and (N, E); None if none was given
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
    second: SecondRelease | None = None
    public: tuple[FloatArray, FloatArray] | None = None

    @cached_property
    def truth(self) -> Truth:
        return Truth(self.splits.victim, secrets=self.secrets, likeness=self._likeness)

    @cached_property
    def _likeness(self) -> Likeness | None:
        """Whether a rebuilt face is that of its person, where the attacker's people teach what faces share."""
        own, victim = self.splits.attacker, self.splits.victim
        if victim.schema.kind != "image" or not repeated(own.ids) or not repeated(victim.ids):
            return None
        return person_likeness(fit_embedding(own.x, own.ids, derive_seed(self.seed, "likeness")), victim)

    @cached_property
    def _two_parts(self) -> tuple[Rows, Rows, IntArray] | None:
        """Rows of one release, rows of another, and a pseudonym for each victim; None if nobody has two records."""
        rng = np.random.default_rng(derive_seed(self.seed, "linkage"))
        order = rng.permutation(len(self.splits.victim))
        _, person, counts = np.unique(self.splits.victim.ids[order], return_inverse=True, return_counts=True)
        turn = np.empty(len(order), dtype=np.int64)  # the how-manieth record of its person it is
        turn[np.argsort(person, kind="stable")] = np.concatenate([np.arange(count) for count in counts])
        used = (counts[person] > 1) & (turn < 2 * _MOST_LINKED)
        people = np.empty(len(order), dtype=np.int64)
        people[order] = rng.permutation(len(counts))[person]
        return (order[used & (turn % 2 == 0)], order[used & (turn % 2 == 1)], people) if used.any() else None

    @cached_property
    def _suspects(self) -> tuple[Rows, Dataset, PublicView | None, Truth]:
        """Some victims; candidates for them, in an order and under ids that say nothing; how a public embedding sees
        these; and who is who."""
        rows = self._drawn(np.arange(len(self.splits.victim)), self.effort.candidates)
        order = np.random.default_rng(derive_seed(self.seed, "candidates")).permutation(len(rows))
        suspects = self.splits.victim.take(rows)
        candidates = replace(suspects.take(order), ids=np.arange(len(rows)).astype(np.str_))  # ids may count the rows
        view = None if self.public is None else PublicView(self.public[0], self.public[1][rows][order])
        return rows, candidates, view, Truth(suspects, np.argsort(order).astype(np.int64), rows=rows)

    def some(self, count: int) -> Rows:
        """So many victims, those of the gallery (which are never left out) first."""
        others = np.setdiff1d(np.arange(len(self.splits.victim)), self.shown)
        return np.concatenate([self.shown, self._drawn(others, max(0, count - len(self.shown)))])

    def _drawn(self, rows: Rows, count: int) -> Rows:
        """So many of these rows in their order, drawn at random: a file may be sorted."""
        rng = np.random.default_rng(derive_seed(self.seed, "some victims"))
        return np.sort(rng.permutation(rows)[:count])

    def lined_up(self, attack: Attack, knowledge: Knowledge, release: Release, truth: Truth) -> Stage:
        """A re-identification sees as many releases as there are candidates, an attack that works one by one some of
        them, a linkage those of one half of each person's records beside the other half; other attacks see all."""
        if attack.one_by_one:
            rows = self.some(self.effort.inverted)
            labels = {name: codes[rows] for name, codes in release.utility.items()}
            some = replace(release, payload=release.payload[rows], utility=labels)
            return Stage(knowledge, some, self._truth_of(rows), np.arange(len(self.shown)))
        if attack.threat == LINKAGE and self.second is not None:
            return self._second_linked(knowledge, release, self.second)
        if attack.threat == LINKAGE and self._two_parts is not None:
            return self._linked(knowledge, release, *self._two_parts)
        if attack.threat != "reidentification":
            return Stage(knowledge, release, truth, self.shown)
        rows, candidates, view, who = self._suspects
        few = replace(release, payload=release.payload[rows], utility={})
        return Stage(replace(knowledge, candidates=candidates, public=view), few, who, self.shown[:0])

    def _truth_of(self, rows: Rows) -> Truth:
        return Truth(self.splits.victim.take(rows), likeness=self._likeness, rows=rows)

    def _second_linked(self, knowledge: Knowledge, release: Release, second: SecondRelease) -> Stage:
        """The victims' payloads beside those of the second release, which stand in another order; where nothing is
        defended both are the records."""
        rows, order = self._suspects[0], np.random.default_rng(derive_seed(self.seed, "second release"))
        _, person = np.unique(self.splits.victim.ids[rows], return_inverse=True)
        people = order.permutation(int(person.max()) + 1)[person].astype(np.int64)
        there = order.permutation(len(rows))
        defended = release.payload is self.release.payload
        payload = second.payload if defended else release.payload
        other = OtherRelease(payload[rows][there], people[there], second.query if defended else None)
        few = replace(release, payload=release.payload[rows], utility={})
        return Stage(
            replace(knowledge, linked=other), few, Truth(self.splits.victim.take(rows), people), self.shown[:0]
        )

    def _linked(self, knowledge: Knowledge, release: Release, here: Rows, there: Rows, people: IntArray) -> Stage:
        other = OtherRelease(release.payload[there], people[there])
        few = replace(release, payload=release.payload[here], utility={})
        truth = Truth(self.splits.victim.take(here), people[here], rows=here)
        return Stage(replace(knowledge, linked=other), few, truth, self.shown[:0])


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

    def encoder_control(self, attack: Attack, knowledge: Knowledge) -> Values | None:
        """What the attack gets from the mechanism's encoder without its noise, or None where that is not measured."""
        return None

    @property
    def inverse_effort(self) -> dict[str, Any]:
        """How hard inverse networks try."""
        effort = self.scene.effort
        return {"epochs": effort.attack_epochs, "width": effort.attack_width, "steps": effort.attack_steps}
