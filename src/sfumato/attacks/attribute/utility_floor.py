"""The floor: whoever may read the utility label can follow its correlation with the private one."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from sfumato.attacks.attribute.probes import ResidualProbe
from sfumato.attacks.base import AttributeAttack
from sfumato.attacks.decoder_training import Memo
from sfumato.core.dataset import FloatArray, IntArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.release import Release


class UtilityReading:
    """A utility label as the strongest probe reads it from a release; trained once for all private labels."""

    def __init__(self, probe: ResidualProbe) -> None:
        self.probe = probe
        self._read: Memo[FloatArray] = Memo()

    def __repr__(self) -> str:
        return f"UtilityReading({self.probe!r})"

    def of(self, release: Release, knowledge: Knowledge) -> FloatArray:
        """p(u | payload), (N, classes)."""
        key = (knowledge.query, knowledge.auxiliary, release.payload)
        return self._read.get(key, lambda: self.probe.guess(release, knowledge))


class ByUtility(AttributeAttack):
    """p(y | payload) = Σ p(u | payload) · p(y | u), with the shares p(y | u) of the attacker's own records.

    With two classes and p(y | u) = p or 1 − p, who reads u with accuracy a guesses y with a·p + (1 − a)(1 − p): no
    mechanism that serves u so well can be below.
    """

    label: str
    reading: UtilityReading

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"by-{re.sub(r'[^A-Za-z0-9._-]', '_', self.follows)}"

    @property
    def follows(self) -> str:  # type: ignore[override]
        return self.reading.probe.label

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        own = knowledge.auxiliary
        sizes = [len(own.schema.classes(label)) for label in (self.follows, self.label)]
        shares = _shares(sizes, own.label(self.follows), own.label(self.label))
        return np.asarray(self.reading.of(release, knowledge) @ shares, dtype=np.float32)


def _shares(sizes: Sequence[int], given: IntArray, of: IntArray) -> FloatArray:
    """The shares of one label among the records of each class of another; those of all records count as one record."""
    counts = np.zeros(sizes)
    np.add.at(counts, (given, of), 1.0)
    counts += counts.sum(axis=0) / max(1.0, counts.sum())
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))
