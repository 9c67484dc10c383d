"""What averaging gives: leakage against the number of releases of the same records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from sfumato.attacks.base import Attack
from sfumato.attacks.decoder_training import affordable
from sfumato.attacks.registry import averages_suite
from sfumato.auditing.plans.base import Scene
from sfumato.auditing.result import Say
from sfumato.auditing.steps import AuditStep
from sfumato.auditing.trials import Found
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Knowledge, Query, Truth
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release

_RECORDS = 4_000
"""Of the attacker's own: each is queried as often as a victim was released, several times over."""


def repeated_steps(scene: Scene) -> Iterator[AuditStep]:
    """The strongest readers on the mean of 4, 16 … releases, each trained on such means; ``releases`` says how many.

    They find nothing where a record leaves in the same way every time.
    """
    if scene.repeat is None or not scene.knowledge.randomised or not scene.effort.averages:
        return
    releases = _Releases(scene)
    for count in scene.effort.averages:
        averaged = _Averaged(releases, count)
        for attack in _suite(scene):

            def do(say: Say, attack: Attack = attack, averaged: _Averaged = averaged) -> Found:
                return averaged.read_by(attack, say)

            yield AuditStep(f"{attack.name}|{attack.target()}, {count} releases", do)


class _Releases:
    """Several releases of some of the victims, made when the first attack asks for them."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        size, self._most = scene.release.payload[0].size, max(scene.effort.averages)
        self.rows = scene.some(affordable(len(scene.splits.victim), size * self._most))
        self.victim = scene.splits.victim.take(self.rows)

    @cached_property
    def every(self) -> tuple[FloatArray, ...]:
        """As many as are averaged at most; one if they are all alike."""
        assert self.scene.repeat is not None  # or nobody asks
        first = self.scene.release.payload[self.rows]
        further = self.scene.repeat(self.victim, self._most - 1, derive_seed(self.scene.seed, "victims"))
        return (first, *further) if any(not np.array_equal(first, payload) for payload in further) else (first,)


class _Averaged:
    """The mean of ``count`` releases, and an attacker that can ask for such means."""

    def __init__(self, releases: _Releases, count: int) -> None:
        self._releases, self._count = releases, count
        self._scene = releases.scene

    def read_by(self, attack: Attack, say: Say) -> Found:
        if len(self._releases.every) == 1:
            return Found()
        say(f"{self._scene.name}: {attack.name}, {self._count} releases")
        outcome = attack(self._release, self._knowledge, Truth(self._releases.victim, rows=self._releases.rows))
        count = self._count
        scores = [replace(s, attack=f"{s.attack}-of-{count}", releases=count) for s in outcome.scores]
        return Found(repeated=scores)

    @cached_property
    def _release(self) -> Release:
        return replace(self._scene.release, payload=_mean(self._releases.every[: self._count]), utility={})

    @cached_property
    def _knowledge(self) -> Knowledge:
        return _averaging(self._scene.knowledge, self._count)


def _suite(scene: Scene) -> list[Attack]:
    effort = scene.effort
    found = averages_suite(
        scene.splits.schema, epochs=effort.attack_epochs, width=effort.attack_width, steps=effort.attack_steps
    )
    return [attack for attack in found if effort.tries(attack.threat)]


def _averaging(knowledge: Knowledge, count: int) -> Knowledge:
    """The attacker's own records, each as the mean of as many queries."""
    query = knowledge.query
    assert query is not None  # a mechanism that releases can be asked
    ask: Query = query

    def mean(data: Dataset) -> FloatArray:
        return _mean([ask(data) for _ in range(count)])

    own = knowledge.auxiliary.sample(_RECORDS, derive_seed(knowledge.seed, "averages"))
    return replace(knowledge, query=mean, auxiliary=own, encoder=None)


def _mean(payloads: Sequence[FloatArray]) -> FloatArray:
    total = payloads[0].astype(np.float64)
    for payload in payloads[1:]:
        total += payload
    return np.asarray(total / len(payloads), dtype=np.float32)
