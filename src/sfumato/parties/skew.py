"""Parties that differ: how much of each class every party gets (non-IID data, §6.2 of the paper of ``ars``).

A skew is a table of shares, class by party, whose rows add up to 1. A record then goes where its own hash says, within
the shares of its class, so that no record is lost or doubled, and one record more or less moves no other.

====================  ==================================================================================================
``even``              every class in equal shares
``classes=k``         label skew: every party has k classes, and a class is shared evenly by the parties that have it
``dirichlet=α``       label skew: the shares of each class are drawn from a Dirichlet law; the smaller α, the less even
``power=a``           quantity skew: party i gets a share in proportion to (i + 1)⁻ᵃ of every class
``lognormal=σ``       quantity skew: shares in proportion to exp(σ·N(0, 1))
====================  ==================================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.core.dataset import IntArray
from sfumato.core.errors import UsageError, unknown
from sfumato.core.origin import Hashes
from sfumato.core.randomness import derive_seed
from sfumato.data.placement import placed

EVEN = "even"
_MOST = {"classes": 1e6, "dirichlet": 1e6, "power": 10.0, "lognormal": 10.0}
KINDS = (EVEN, *_MOST)

Shares = npt.NDArray[np.float64]
"""(classes, parties), rows add up to 1."""


@dataclass(frozen=True)
class Skew:
    """How unevenly records are dealt; see the module's docstring."""

    kind: str = EVEN
    amount: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Skew:
        """Read ``even``, ``classes=2``, ``dirichlet=0.3``, ``power=1`` or ``lognormal=1``."""
        kind, equals, amount = text.partition("=")
        if kind not in KINDS:
            raise unknown("partition", kind, KINDS)
        if kind == EVEN:
            if equals:
                raise UsageError(f"partition {text}: even takes no number.")
            return cls()
        try:
            value = float(amount)
        except ValueError:
            raise UsageError(
                f"partition {text}: give a number, as in {kind}={'2' if kind == 'classes' else '0.5'}."
            ) from None
        if not 0 < value <= _MOST[kind]:
            raise UsageError(f"partition {text}: the number must be above 0 and at most {_MOST[kind]:g}.")
        if kind == "classes" and value != int(value):
            raise UsageError(f"partition {text}: a party has a whole number of classes.")
        return cls(kind, value)

    @property
    def by_label(self) -> bool:
        """Whether it depends on a record's class."""
        return self.kind in ("classes", "dirichlet")

    @property
    def by_quantity(self) -> bool:
        """Whether parties have different numbers of records by intention."""
        return self.kind in ("power", "lognormal")

    def shares(self, classes: int, parties: int, seed: int) -> Shares:
        """What every party gets of every class.

        Raises:
            UsageError: There are fewer classes than a party is to have, or some class would have no party.
        """
        random = np.random.default_rng(derive_seed(seed, "skew", self.kind, self.amount))
        if self.kind == "classes":
            return _dealt_classes(classes, parties, int(self.amount), random)
        if self.kind == "dirichlet":
            drawn = random.gamma(self.amount, size=(classes, parties))
            return np.asarray(drawn / np.maximum(drawn.sum(axis=1, keepdims=True), np.finfo(float).tiny))
        weights: npt.NDArray[np.float64] = np.ones(parties)
        if self.kind == "power":
            weights = np.arange(1.0, parties + 1) ** -self.amount
        if self.kind == "lognormal":
            weights = np.exp(self.amount * random.standard_normal(parties))
        return np.tile(weights / weights.sum(), (classes, 1))

    def place(self, keys: Hashes, codes: IntArray, classes: int, parties: int, seed: int, what: str) -> IntArray:
        """The party of each record, from what its place hangs on (N, 16), its class (N,) and the seed alone."""
        shares = self.shares(classes, parties, seed)
        whose = np.full(len(keys), -1, dtype=np.int64)
        for code in range(classes) if self.by_label else (0,):
            rows = codes == code if self.by_label else np.ones(len(keys), dtype=bool)
            whose[rows] = placed(keys[rows], shares[code].tolist(), seed, what)
        return whose


def _dealt_classes(classes: int, parties: int, each: int, random: np.random.Generator) -> Shares:
    if each > classes:
        raise UsageError(f"partition classes={each}: the label has {classes} classes.")
    if each * parties < classes:
        raise UsageError(
            f"partition classes={each}: {parties} parties would have {each * parties} of the label's {classes} classes,"
            f" and records would be lost: use more parties, or at least classes={-(-classes // parties)}."
        )
    order = random.permutation(classes)
    has = np.zeros((classes, parties))
    for party in range(parties):
        has[order[(party * each + np.arange(each)) % classes], party] = 1.0
    return np.asarray(has / has.sum(axis=1, keepdims=True))


def one_class_each(keys: Hashes, codes: IntArray) -> IntArray:
    """The class by which a subject is placed, for each of its records: the most frequent (of several, the lowest).

    Otherwise the records of one subject, which have different labels, would go to different parties.
    """
    _, whose = np.unique(keys, axis=0, return_inverse=True)
    counts = np.zeros((int(whose.max(initial=-1)) + 1, int(codes.max(initial=0)) + 1), dtype=np.int64)
    np.add.at(counts, (whose.reshape(-1), codes), 1)
    return np.asarray(counts.argmax(axis=1)[whose.reshape(-1)], dtype=np.int64)
