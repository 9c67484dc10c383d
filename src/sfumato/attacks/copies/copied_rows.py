"""Copies: does a person's record stand in the release, as it is or nearly?

Two people can have the same record by chance, so copies of held-out people are subtracted. Nearly the same is what is
nearer to a released row than all but one in a hundred of the attacker's own people are.
"""

from __future__ import annotations

import numpy as np

from sfumato.attacks.base import Guess
from sfumato.attacks.coded_rows import nearest, row_keys
from sfumato.attacks.held_out import HeldOutAttack, candidates_of
from sfumato.core.dataset import Dataset, FloatArray
from sfumato.core.knowledge import Knowledge
from sfumato.core.metrics import Values
from sfumato.core.release import Release

NEAR = 0.01
"""The share of strangers that count as nearly copied."""
_CELLS = 2_000_000
"""Pairs of rows that are compared at once."""
_RARE = 0.75
"""Rare are those who are further from everybody else's records than this share of the candidates."""


class CopyAttack(HeldOutAttack):
    """The guess is 1 where the candidate is found, 0 where not, −1 where it is not asked for."""

    threat = "copies"

    def came_true(self, guess: Guess, truth: Dataset) -> Values:
        return np.where(guess < 0, np.nan, guess).astype(np.float64)


class ExactCopies(CopyAttack):
    """The same value in every column."""

    name = "copy-exact"
    title = "The whole row"
    how = "the same value in every column"
    with_auxiliary = False

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        return np.isin(row_keys(candidates_of(knowledge).x), row_keys(release.payload)).astype(np.float32)


class RareCopies(CopyAttack):
    """The same value in every column, for the quarter of people who are least like others: nobody shares their row."""

    name = "copy-rare"
    title = "The whole row of a rare person"
    how = "the same value in every column, of people unlike the attacker's own"

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        points = candidates_of(knowledge).x
        found = np.isin(row_keys(points), row_keys(release.payload)).astype(np.float32)
        lonely = nearest(points, knowledge.auxiliary.x, knowledge.columns)[1][:, 0]
        return np.where(lonely >= np.quantile(lonely, _RARE), found, -1.0).astype(np.float32)


class NearCopies(CopyAttack):
    """Nearer to a released row, in the mean over the columns, than 99 % of other people."""

    name = "copy-near"
    title = "Nearly the whole row"
    how = "nearer to a released row than 99 % of other people"

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        near = [
            nearest(points, release.payload, knowledge.columns)[1][:, 0]
            for points in (candidates_of(knowledge).x, knowledge.auxiliary.x)
        ]
        return (near[0] < np.quantile(near[1], NEAR)).astype(np.float32)


class PartCopies(CopyAttack):
    """Shares more with one released row than 99 % of other people do: copies with gaps, rows blended or mixed up.

    A value that both have counts by how rare it is, −log of its share among the released rows or the attacker's own
    people, whichever is larger. So two rare values of one row outweigh all that half of the people have in common.
    """

    name = "copy-part"
    title = "Much of the row"
    how = "shares more values with one released row, rare ones counting more, than 99 % of other people"
    version = 3

    def guess(self, release: Release, knowledge: Knowledge) -> FloatArray:
        own, released = knowledge.auxiliary.x, release.payload
        shared = [_most_shared(points, released, own) for points in (candidates_of(knowledge).x, own)]
        return (shared[0] > np.quantile(shared[1], 1.0 - NEAR)).astype(np.float32)


def _most_shared(points: FloatArray, among: FloatArray, own: FloatArray) -> Values:
    """The most that each point has in common with one row."""
    weights = np.stack([_rarity(*columns) for columns in zip(points.T, among.T, own.T, strict=True)], axis=1)
    rows = np.asfortranarray(among)
    found = np.empty(len(points))
    block = max(1, _CELLS // max(1, len(among)))
    for start in range(0, len(points), block):
        where = slice(start, start + block)
        common = np.zeros((len(points[where]), len(among)), dtype=np.float32)
        for place in range(points.shape[1]):
            equal = points[where, place, None] == rows[None, :, place]
            common += equal * weights[where, place, None]
        found[where] = common.max(axis=1)
    return found


def _rarity(values: FloatArray, among: FloatArray, own: FloatArray) -> FloatArray:
    """−log of each value's share; what nobody has counts as what one has."""
    shares = [_share(values, part) for part in (among, own)]
    return -np.log(np.maximum(*shares)).astype(np.float32)


def _share(values: FloatArray, among: FloatArray) -> Values:
    ordered = np.sort(among)
    count = np.searchsorted(ordered, values, "right") - np.searchsorted(ordered, values, "left")
    return np.asarray(np.maximum(count, 1) / max(1, len(among)), dtype=np.float64)
