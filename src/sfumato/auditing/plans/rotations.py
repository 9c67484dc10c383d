"""Rotated messages: the attacker's own device, line-ups, repeats, and messages with the identity for a key."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sfumato.attacks.base import Attack
from sfumato.attacks.decoder_training import MOST_NUMBERS
from sfumato.attacks.registry import rotations_suite
from sfumato.attacks.rotations.direction_critic import InverseCritic
from sfumato.attacks.rotations.later_releases import LaterAttack
from sfumato.attacks.rotations.plain_messages import ReadEveryRow, ReadFeature
from sfumato.auditing.controls import Values
from sfumato.auditing.plans.base import Plan, Scene, Stage
from sfumato.auditing.plans.later_stories import STORIES, Visits
from sfumato.core.dataset import Dataset, IntArray
from sfumato.core.fresh_seeds import FreshSeeds, asking
from sfumato.core.knowledge import Knowledge, Later, Opened, OwnDevice, Truth
from sfumato.core.randomness import derive_seed

if TYPE_CHECKING:
    from torch import nn

Open = Callable[[Dataset, int], Opened]
"""Records and a seed → their release, with its secrets."""


class RotationsPlan(Plan):
    """``opened`` is the victims' release with its secrets, for the scorer; ``visits`` makes others."""

    def __init__(self, scene: Scene, opened: Opened, visits: Visits, cloud: nn.Module | None) -> None:
        super().__init__(scene)
        self._opened, self._visits, self._cloud = opened, visits, cloud
        victim, seed, effort = scene.splits.victim, scene.seed, scene.effort
        d = opened.rows.shape[1]
        rows, self._positions = self._shuffled(opened)
        self._line_ups = victim.x[rows]
        self._device = _device(self._open, derive_seed(seed, "own device"))
        self._plain_device: OwnDevice = lambda data: _turned_back(self._device(data))
        each = opened.payload[0].size * (effort.repeats + 1)
        most = max(2 * len(scene.shown), 2 * d, min(effort.candidates, MOST_NUMBERS // each))
        self._some_rows = scene.some(most)
        self._some = victim.take(self._some_rows)
        self._kept: dict[tuple[str, bool], Stage] = {}

    def _open(self, data: Dataset, seed: int) -> Opened:
        return self._visits([data], seed=seed)[0]

    def attacks(self) -> list[Attack]:
        return list(self._suite)

    @cached_property
    def _suite(self) -> list[Attack]:
        splits = self.scene.splits
        return rotations_suite(splits.schema, tuple(splits.victim.utility), **self.inverse_effort)

    @cached_property
    def _readers(self) -> dict[str, Attack]:
        """What reads plain messages, whatever the attack; its decoder is one that the suite trains anyway."""
        decoder = next(each.decoder for each in self._suite if isinstance(each, InverseCritic))
        readers: list[Attack] = [ReadFeature(decoder=decoder), ReadEveryRow(decoder=decoder)]
        return {reader.threat: reader for reader in readers}

    def grant(self, knowledge: Knowledge) -> Knowledge:
        return replace(knowledge, own_device=self._device, cloud=self._cloud)

    def stage(self, attack: Attack, knowledge: Knowledge) -> Stage | None:
        """Attacks on repeated releases see some of the victims; those that name the row, the records behind it."""
        if attack.wants_repeats:
            return self._again(knowledge, plain=False)
        if isinstance(attack, LaterAttack):
            return self._told(attack.story, knowledge)
        return self._lined_up(Stage(knowledge, self.scene.release, self._truth(self._opened), self.scene.shown), attack)

    def control(self, attack: Attack, knowledge: Knowledge) -> Values | None:
        """Against the same messages with the identity for a key; plain features are the mechanism's own.

        Records are rebuilt from them by one decoder of features, whatever the attack.
        """
        if knowledge.encoder is not None and attack.threat in self._readers:
            return self._read(attack.threat, knowledge, again=attack.wants_repeats)
        if attack.wants_repeats:
            stage = self._again(knowledge, plain=True)
        else:
            plain = self._plain(knowledge)
            stage = self._lined_up(plain, attack) or self.scene.lined_up(
                attack, plain.knowledge, plain.release, plain.truth
            )
        if attack.obstacle(stage.knowledge) is not None:
            return None
        return attack(stage.release, stage.knowledge, stage.truth).values()

    def _read(self, threat: str, knowledge: Knowledge, *, again: bool) -> Values:
        stage = self._again(knowledge, plain=True) if again else self._plain(knowledge)
        reader, digest = self._readers[threat], hashlib.sha256(stage.release.payload.tobytes()).hexdigest()

        def measure() -> Values:
            with asking("plain messages"):  # by whoever comes first
                return reader(stage.release, stage.knowledge, stage.truth).values()

        return self.scene.controls.get(f"plain messages {digest}: {reader!r}", measure)

    def _lined_up(self, stage: Stage, attack: Attack) -> Stage | None:
        """With the records behind each message, for the one threat that is about them."""
        if attack.threat != "row":
            return None
        return replace(stage, knowledge=replace(stage.knowledge, line_ups=self._line_ups))

    def _shuffled(self, opened: Opened) -> tuple[IntArray, IntArray]:
        """The rows of every message in an order that says nothing, and where the record is among them."""
        rng = np.random.default_rng(derive_seed(self.scene.seed, "line-ups"))
        order = rng.permuted(np.tile(np.arange(opened.rows.shape[1]), (len(opened.rows), 1)), axis=1)
        return np.take_along_axis(opened.rows, order, axis=1), (order == 0).argmax(axis=1).astype(np.int64)

    def _told(self, story: str, knowledge: Knowledge) -> Stage:
        """Some of the victims, with what their device sent later."""
        if (story, False) not in self._kept:
            seed, d = derive_seed(self.scene.seed, "later", story), self._opened.rows.shape[1]
            told = STORIES[story](self._visits, self._some, self.scene.splits.attacker, d, seed)
            if told is None:
                return Stage(knowledge, self.scene.release, self._truth(self._opened), self.scene.shown)
            rows, positions = self._shuffled(told.first)
            later = Later(told.later, told.by_now[rows])
            known = replace(knowledge, line_ups=told.behind[rows], later=later)
            release = replace(self.scene.release, payload=told.first.payload, utility={})
            unknown = np.full(len(told.victims), -1)  # a story chooses among the victims
            truth = Truth(told.victims, positions, secrets={"key": told.first.key}, rows=unknown)
            self._kept[story, False] = Stage(known, release, truth, np.arange(0))
        return self._kept[story, False]

    def _truth(self, opened: Opened) -> Truth:
        return Truth(self.scene.splits.victim, self._positions, secrets={**self.scene.secrets, "key": opened.key})

    def _plain(self, knowledge: Knowledge) -> Stage:
        """No defence: the same messages with the identity for a key, and an own device that does so, too."""
        if ("plain", True) not in self._kept:
            device, opened = self._plain_device, _turned_back(self._opened)
            bare = replace(knowledge, own_device=device, query=lambda data: device(data).payload)
            release = replace(self.scene.release, payload=opened.payload)
            self._kept["plain", True] = Stage(bare, release, self._truth(opened), self.scene.shown)
        return self._kept["plain", True]

    def _again(self, knowledge: Knowledge, *, plain: bool) -> Stage:
        """Some of the victims, sent several times by their own device; ``plain``: with the identity for a key."""
        if ("again", plain) not in self._kept:
            seed, times = derive_seed(self.scene.seed, "repeats"), self.scene.effort.repeats
            if plain:
                knowledge = self._plain(knowledge).knowledge
                sent = [_turned_back(self._open(self._some, derive_seed(seed, n))) for n in range(times + 1)]
                first, repeats = sent[0], tuple(each.payload for each in sent[1:])
            else:
                assert self.scene.repeat is not None  # whoever can open releases can repeat them
                first, repeats = self._open(self._some, seed), self.scene.repeat(self._some, times, seed)
            known = replace(knowledge, repeats=repeats, line_ups=None)
            release = replace(self.scene.release, payload=first.payload, utility={})
            shown = np.arange(len(self.scene.shown))
            truth = Truth(self._some, secrets={"key": first.key}, rows=self._some_rows)
            self._kept["again", plain] = Stage(known, release, truth, shown)
        return self._kept["again", plain]


def _device(open_: Open, seed: int) -> OwnDevice:
    """A device of the attacker's own, with fresh, repeatable keys and decoys on every call."""
    fresh = FreshSeeds(seed)
    return lambda data: open_(data, fresh())


def _turned_back(opened: Opened) -> Opened:
    """The rows as they were before the key turned them."""
    d = opened.key.shape[1]
    rows = opened.payload.reshape(len(opened.payload), d, -1)
    payload = np.matmul(opened.key.transpose(0, 2, 1), rows).reshape(opened.payload.shape)
    return Opened(payload, np.broadcast_to(np.eye(d, dtype=np.float32), opened.key.shape).copy(), opened.rows)
