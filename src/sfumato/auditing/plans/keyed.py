"""What there is to know about a mechanism with keys: the attacker's own device, line-ups, repeats, and no defence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.attacks.decoder_training import MOST_NUMBERS
from sfumato.auditing.effort import Effort
from sfumato.core.dataset import Dataset, Splits
from sfumato.core.knowledge import Knowledge, Opened, OwnDevice, Truth
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release

if TYPE_CHECKING:
    from sfumato.mechanisms.base import Mechanism

Staged = tuple[Knowledge, Release, Truth]


class Keyed:
    """The victims' release opened, for the scorer; and what follows from it for the attacker."""

    def __init__(
        self,
        mechanism: Mechanism,
        splits: Splits,
        effort: Effort,
        seed: int,
        opened: Opened,
        shown: np.ndarray[Any, np.dtype[np.intp]],
    ) -> None:
        self._mechanism, self._effort, self._seed = mechanism, effort, seed
        self._opened = opened
        victim = splits.victim
        count, d = opened.rows.shape
        order = np.random.default_rng(derive_seed(seed, "line-ups")).permuted(np.tile(np.arange(d), (count, 1)), axis=1)
        self._line_ups = victim.x[np.take_along_axis(opened.rows, order, axis=1)]
        self._positions = (order == 0).argmax(axis=1).astype(np.int64)
        self.truth = Truth(victim, self._positions, keys=opened.key)
        self._victim = victim
        self._device = _device(mechanism, derive_seed(seed, "own device"))
        self._plain_device = _without_keys(self._device)
        each = opened.payload[0].size * (effort.repeats + 1)
        most = max(2 * len(shown), 2 * d, min(effort.candidates, MOST_NUMBERS // each))
        rest = np.setdiff1d(np.arange(len(victim)), shown)
        self._some = victim.take(np.concatenate([shown, rest])[:most])
        self._plain: Staged | None = None
        self._again: dict[bool, Staged] = {}

    def granted(self, knowledge: Knowledge) -> Knowledge:
        """With the attacker's own device and the cloud's network."""
        return replace(knowledge, own_device=self._device, cloud=self._mechanism.public_cloud())

    def lined_up(self, knowledge: Knowledge) -> Knowledge:
        """With the records behind each message, for the one threat that is about them."""
        return replace(knowledge, line_ups=self._line_ups)

    def plain(self, knowledge: Knowledge, release: Release) -> Staged:
        """No defence: the same messages with the identity for a key, and an own device that does so, too."""
        if self._plain is None:
            device = self._plain_device
            bare = replace(knowledge, own_device=device, query=lambda data: device(data).payload)
            opened = _turned_back(self._opened)
            truth = Truth(self._victim, self._positions, keys=opened.key)
            self._plain = (bare, replace(release, payload=opened.payload), truth)
        return self._plain

    def again(self, knowledge: Knowledge, release: Release, *, plain: bool = False) -> Staged:
        """Some of the victims, sent several times by their own device; ``plain``: with the identity for a key."""
        if plain not in self._again:
            seed = derive_seed(self._seed, "repeats")
            times = self._effort.repeats
            if plain:
                knowledge, release, _ = self.plain(knowledge, release)
                sent = [
                    self._mechanism.opened(self._some, seed=derive_seed(seed, number)) for number in range(times + 1)
                ]
                first, *more = [_turned_back(each) for each in sent if each is not None]
                repeats = tuple(each.payload for each in more)
            else:
                opened = self._mechanism.opened(self._some, seed=seed)
                assert opened is not None  # as it was for all victims
                first, repeats = opened, self._mechanism.repeated(self._some, times, seed=seed)
            known = replace(knowledge, repeats=repeats, line_ups=None)
            again = replace(release, payload=first.payload, utility={})
            self._again[plain] = (known, again, Truth(self._some, keys=first.key))
        return self._again[plain]


def _device(mechanism: Mechanism, seed: int) -> OwnDevice:
    """A device of the attacker's own, with fresh, repeatable keys and decoys on every call."""
    calls = 0

    def own(data: Dataset) -> Opened:
        nonlocal calls
        calls += 1
        opened = mechanism.opened(data, seed=derive_seed(seed, calls))
        assert opened is not None  # as it was for the victims
        return opened

    return own


def _without_keys(device: OwnDevice) -> OwnDevice:
    return lambda data: _turned_back(device(data))


def _turned_back(opened: Opened) -> Opened:
    """The rows as they were before the key turned them."""
    d = opened.key.shape[1]
    rows = opened.payload.reshape(len(opened.payload), d, -1)
    payload = np.matmul(opened.key.transpose(0, 2, 1), rows).reshape(opened.payload.shape)
    return Opened(payload, np.broadcast_to(np.eye(d, dtype=np.float32), opened.key.shape).copy(), opened.rows)
