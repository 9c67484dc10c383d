"""The floors where a number takes part: what the utility labels alone, released or read, say of a private label."""

from __future__ import annotations

import re

import numpy as np

from sfumato.attacks.attribute.number_attack import NumberAttack
from sfumato.attacks.attribute.number_probes import ResidualNumberProbe, fit_number
from sfumato.attacks.attribute.probes import class_scores, fit_probe
from sfumato.attacks.attribute.utility_floor import UtilityReading
from sfumato.attacks.base import AttributeAttack
from sfumato.attacks.decoder_training import Memo
from sfumato.attacks.label_codes import labels_missing, side_by_side
from sfumato.core.dataset import FloatArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.metrics import Values
from sfumato.core.randomness import derive_seed
from sfumato.core.release import Release
from sfumato.core.threats import ATTRIBUTE_WITH_LABELS


class NumberReading:
    """A utility number as the strongest probe reads it from a release; trained once for all private labels."""

    def __init__(self, probe: ResidualNumberProbe) -> None:
        self.probe = probe
        self._read: Memo[Values] = Memo()

    def __repr__(self) -> str:
        return f"NumberReading({self.probe!r})"

    def of(self, release: Release, knowledge: Knowledge) -> FloatArray:
        """The number, (N, 1)."""
        key = (knowledge.query, knowledge.auxiliary, release.payload)
        return self._read.get(key, lambda: self.probe.guess(release, knowledge))[:, None].astype(np.float32)


Reading = UtilityReading | NumberReading


def _read_and_known(reading: Reading, release: Release, knowledge: Knowledge) -> tuple[FloatArray, FloatArray]:
    """What is read of the utility label of each victim, and what it is for each of the attacker's own records: the
    number, (·, 1), or class probabilities."""
    own, label = knowledge.auxiliary, reading.probe.label
    read = reading.of(release, knowledge)
    if isinstance(reading, NumberReading):
        return read, own.numbers(label)[:, None].astype(np.float32)
    return read, np.eye(len(own.schema.classes(label)), dtype=np.float32)[own.label(label)]


class NumberByUtility(NumberAttack):
    """Reads a utility label from the payload and follows what it says of a private number, by the attacker's own
    records: with boosted trees of a number, with the class means Σ p(u | payload) · E[y | u] of a class."""

    label: str
    reading: Reading

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"by-{re.sub(r'[^A-Za-z0-9._-]', '_', self.follows)}"

    @property
    def follows(self) -> str:  # type: ignore[override]
        return self.reading.probe.label

    def guess(self, release: Release, knowledge: Knowledge) -> Values:
        read, known = _read_and_known(self.reading, release, knowledge)
        wanted = knowledge.auxiliary.numbers(self.label)
        if isinstance(self.reading, NumberReading):
            return _by_trees(known, wanted, read, derive_seed(knowledge.seed, self.name, self.label))
        sums, counts = known.T @ wanted + wanted.mean(), known.sum(axis=0) + 1.0  # the mean of all as one record more
        return np.asarray(read @ (sums / counts), dtype=np.float64)


class ClassByNumber(AttributeAttack):
    """Reads a utility number from the payload and follows what it says of a private class, by boosted trees."""

    label: str
    reading: NumberReading

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"by-{re.sub(r'[^A-Za-z0-9._-]', '_', self.follows)}"

    @property
    def follows(self) -> str:  # type: ignore[override]
        return self.reading.probe.label

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        own, seed = knowledge.auxiliary, derive_seed(knowledge.seed, self.name, self.label) % 2**32
        read, known = _read_and_known(self.reading, release, knowledge)
        model = fit_probe("trees", known, own.label(self.label), seed)
        return class_scores(model, read, len(own.schema.classes(self.label)))


class NumberFromLabels(NumberAttack):
    """What the released utility labels say of a private number, without the payload: boosted trees."""

    name = "label-only"
    threat = ATTRIBUTE_WITH_LABELS

    label: str

    def obstacle(self, knowledge: Knowledge) -> str | None:
        return labels_missing(knowledge)

    def guess(self, release: Release, knowledge: Knowledge) -> Values:
        own, seed = knowledge.auxiliary, derive_seed(knowledge.seed, self.name, self.label)
        known, given = side_by_side(own.utility, own.schema), side_by_side(release.utility, own.schema)
        return _by_trees(known, own.numbers(self.label), given, seed)


def _by_trees(known: FloatArray, wanted: Values, given: FloatArray, seed: int) -> Values:
    return fit_number("trees", known, wanted.astype(np.float32), seed % 2**32)(given)
