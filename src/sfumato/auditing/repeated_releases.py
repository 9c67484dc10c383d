"""What averaging gives: leakage against the number of releases of the same records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.attacks.base import Attack
from sfumato.attacks.decoder_training import affordable
from sfumato.attacks.registry import averages_suite
from sfumato.auditing.plans.base import Scene
from sfumato.auditing.result import Say
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Knowledge, Query, Truth
from sfumato.core.randomness import derive_seed
from sfumato.core.score import Score

_RECORDS = 4_000
"""Of the attacker's own: each is queried as often as a victim was released, several times over."""


def repeated_scores(scene: Scene, say: Say) -> tuple[Score, ...]:
    """The strongest readers on the mean of 4, 16 … releases, each trained on such means; ``releases`` says how many.

    Nothing where a record leaves in the same way every time.
    """
    if scene.repeat is None or not scene.knowledge.randomised or not scene.effort.averages:
        return ()
    size, most = scene.release.payload[0].size, max(scene.effort.averages)
    rows = scene.some(affordable(len(scene.splits.victim), size * most))
    victim, first = scene.splits.victim.take(rows), scene.release.payload[rows]
    further = scene.repeat(victim, most - 1, derive_seed(scene.seed, "victims"))
    if all(np.array_equal(first, payload) for payload in further):
        return ()
    scores: list[Score] = []
    for count in scene.effort.averages:
        release = replace(scene.release, payload=_mean([first, *further[: count - 1]]), utility={})
        knowledge = _averaging(scene.knowledge, count)
        for attack in _suite(scene):
            say(f"{scene.name}: {attack.name}, {count} releases")
            outcome = attack(release, knowledge, Truth(victim, rows=rows))
            scores += [replace(s, attack=f"{s.attack}-of-{count}", releases=count) for s in outcome.scores]
    return tuple(scores)


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


def _mean(payloads: list[FloatArray]) -> FloatArray:
    total = payloads[0].astype(np.float64)
    for payload in payloads[1:]:
        total += payload
    return np.asarray(total / len(payloads), dtype=np.float32)
